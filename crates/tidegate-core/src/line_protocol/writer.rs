use super::tags::read_tag;
use super::token::{KEY, MEASUREMENT, Scanner, push_escaped};
use crate::frame::{LABELS_BYTES_MAX, NAME_BYTES_MAX};
use crate::usage::UsageRecord;
use std::fmt;
use std::fmt::Write;

/// A record that no line stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotALine {
    /// Which part of it can't be written: it is empty or too long, ends with a backslash, contains a control
    /// character or is not what tags are.
    pub part: &'static str,
}

/// Appends the line, with its newline, that stands for a record under the default configuration.
///
/// ```
/// use tidegate_core::line_protocol::write_line;
/// use tidegate_core::usage::UsageRecord;
///
/// let mut out = String::new();
/// let record = UsageRecord {
///     tenant: "a b".into(),
///     meter: "tokens".into(),
///     quantity: "2.50".parse()?,
///     time_ns: 7,
///     labels: "model=small".into(),
/// };
/// write_line(&record, &mut out)?;
/// assert_eq!(out, "tokens,tenant=a\\ b,model=small value=2.50 7\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// When line protocol can't say it. Nothing is appended then.
pub fn write_line(record: &UsageRecord, out: &mut String) -> Result<(), NotALine> {
    check(&record.meter, "meter")?;
    check(&record.tenant, "tenant")?;
    if record.meter.starts_with('#') || record.meter.starts_with(' ') {
        // The first would be a comment; the parser takes the second for indentation.
        return Err(NotALine { part: "meter" });
    }
    check_labels(&record.labels)?;
    push_escaped(&record.meter, MEASUREMENT, out);
    out.push_str(",tenant=");
    push_escaped(&record.tenant, KEY, out);
    if !record.labels.is_empty() {
        out.push(',');
        out.push_str(&record.labels);
    }
    out.push_str(" value=");
    out.push_str(record.quantity.array_string().as_ref());
    // Writing to a string can't fail.
    let _ = writeln!(out, " {}", record.time_ns);
    Ok(())
}

/// A backslash at the end would escape what follows.
fn check(name: &str, part: &'static str) -> Result<(), NotALine> {
    let control = name.bytes().any(|byte| byte.is_ascii_control());
    let length = (1..=NAME_BYTES_MAX).contains(&name.len());
    if length && !name.ends_with('\\') && !control { Ok(()) } else { Err(NotALine { part }) }
}

/// Labels are tags already, in order and escaped, if they came by a line.
fn check_labels(labels: &str) -> Result<(), NotALine> {
    let wrong = NotALine { part: "labels" };
    let mut scanner = Scanner { line: labels, at: 0 };
    let mut key_before = "";
    while scanner.at < labels.len() {
        let tag = read_tag(&mut scanner).map_err(|_| wrong)?;
        let key = tag.key.raw(labels);
        if key <= key_before || key == "tenant" {
            return Err(wrong);
        }
        key_before = key;
        match scanner.peek() {
            // A comma with nothing behind it would be a tag without a name.
            Some(b',') if scanner.at + 1 < labels.len() => scanner.at += 1,
            None => {}
            Some(_) => return Err(wrong),
        }
    }
    // What ends with a backslash would escape the space behind it.
    if labels.ends_with('\\') || labels.len() > LABELS_BYTES_MAX { Err(wrong) } else { Ok(()) }
}

// === impl NotALine ===

impl fmt::Display for NotALine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line protocol can't say this {}", self.part)
    }
}

impl std::error::Error for NotALine {}
