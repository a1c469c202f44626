use super::tags::read_tag;
use super::token::{KEY, MEASUREMENT, Scanner, push_escaped};
use crate::frame::{LABELS_BYTES_MAX, NAME_BYTES_MAX};
use crate::usage::UsageRecord;
use std::fmt;
use std::fmt::Write;

/// Error for a record that line protocol can't express.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineWriteError {
    /// Part that can't be written: it is empty or too long, ends with a backslash, contains a control character or
    /// is no valid set of tags.
    pub part: &'static str,
}

/// Appends a record as a line with its newline, for the default configuration.
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
/// If line protocol can't express the record. Nothing is appended then.
pub fn write_line(record: &UsageRecord, out: &mut String) -> Result<(), LineWriteError> {
    check(&record.meter, "meter")?;
    check(&record.tenant, "tenant")?;
    if record.meter.starts_with('#') || record.meter.starts_with(' ') {
        // The first would be a comment; the parser skips the second as indentation.
        return Err(LineWriteError { part: "meter" });
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

/// Checks a name. A trailing backslash would escape the next byte.
fn check(name: &str, part: &'static str) -> Result<(), LineWriteError> {
    let control = name.bytes().any(|byte| byte.is_ascii_control());
    let length = (1..=NAME_BYTES_MAX).contains(&name.len());
    if length && !name.ends_with('\\') && !control { Ok(()) } else { Err(LineWriteError { part }) }
}

/// Checks labels: they are sorted and escaped tags already if they came from a line.
fn check_labels(labels: &str) -> Result<(), LineWriteError> {
    let wrong = LineWriteError { part: "labels" };
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
            // A trailing comma would be a tag without a name.
            Some(b',') if scanner.at + 1 < labels.len() => scanner.at += 1,
            None => {}
            Some(_) => return Err(wrong),
        }
    }
    // A trailing backslash would escape the space after it.
    if labels.ends_with('\\') || labels.len() > LABELS_BYTES_MAX { Err(wrong) } else { Ok(()) }
}

// === impl LineWriteError ===

impl fmt::Display for LineWriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line protocol can't express this {}", self.part)
    }
}

impl std::error::Error for LineWriteError {}
