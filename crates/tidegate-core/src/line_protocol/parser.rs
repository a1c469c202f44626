use super::newline::Lines;
use super::tags::Tags;
use super::token::{Fault, KEY, MEASUREMENT, Scanner, Token};
use super::value::{read_time, read_value};
use super::{LineConfig, LineError, LineFault};
use crate::frame::NAME_BYTES_MAX;
use crate::usage::{Names, UsageRecord};
use std::sync::Arc;

/// Field whose meter is the measurement alone.
const VALUE_FIELD: &str = "value";

/// Typical length of a line in bytes, to reserve memory for records.
const LINE_BYTES_USUAL: usize = 96;

/// Parser of line protocol. Keeps its buffers from one line to the next.
#[derive(Debug)]
pub struct LineParser {
    config: LineConfig,
    tags: Tags,
    /// Name that is composed or unescaped.
    text: String,
    measurement: String,
}

/// Result of one line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineOutcome {
    /// Records of the line: none for an empty line or a comment.
    pub records: usize,
    /// Fields skipped as strings or booleans.
    pub fields_skipped: usize,
}

/// Result of a block of lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockOutcome {
    /// Lines, including comments, empty and invalid ones.
    pub lines: usize,
    /// Invalid lines.
    pub lines_failed: usize,
    /// Records of the other lines.
    pub records: usize,
    /// Fields skipped as strings or booleans.
    pub fields_skipped: usize,
}

/// Parts common to all records of a line.
struct Head {
    tenant: Arc<str>,
    labels: Arc<str>,
}

// === impl LineParser ===

impl LineParser {
    /// Creates a parser with empty buffers.
    #[must_use]
    pub fn new(config: LineConfig) -> Self {
        Self { config, tags: Tags::default(), text: String::new(), measurement: String::new() }
    }

    /// Appends the records of a line, without or with its end (`\n`, `\r\n`). A line without a timestamp gets
    /// `now_ns`.
    ///
    /// # Errors
    ///
    /// If the line is malformed, or no field is a number. None of its records is appended then.
    pub fn parse_line(
        &mut self,
        line: &[u8],
        now_ns: i64,
        names: &mut Names,
        out: &mut Vec<UsageRecord>,
    ) -> Result<LineOutcome, LineError> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let before = out.len();
        let result = match std::str::from_utf8(line) {
            Ok(text) => self.parse_text(text, now_ns, names, out),
            Err(error) => Err((LineFault::NotUtf8, error.valid_up_to())),
        };
        result.map_err(|(fault, index)| {
            out.truncate(before);
            LineError::new(fault, line, index)
        })
    }

    /// Appends the records of all lines of a block. Invalid lines are reported to `wrong` and skipped.
    pub fn parse_block(
        &mut self,
        block: &[u8],
        now_ns: i64,
        names: &mut Names,
        out: &mut Vec<UsageRecord>,
        wrong: &mut dyn FnMut(LineError),
    ) -> BlockOutcome {
        let mut outcome = BlockOutcome::default();
        out.reserve(block.len() / LINE_BYTES_USUAL);
        for line in Lines::of(block) {
            outcome.lines += 1;
            match self.parse_line(line, now_ns, names, out) {
                Ok(line) => {
                    outcome.records += line.records;
                    outcome.fields_skipped += line.fields_skipped;
                }
                Err(error) => {
                    outcome.lines_failed += 1;
                    wrong(error);
                }
            }
        }
        outcome
    }

    fn parse_text(
        &mut self,
        line: &str,
        now_ns: i64,
        names: &mut Names,
        out: &mut Vec<UsageRecord>,
    ) -> Result<LineOutcome, Fault> {
        let mut scanner = Scanner { line, at: 0 };
        scanner.skip_spaces();
        if matches!(scanner.peek(), None | Some(b'#')) {
            return Ok(LineOutcome::default());
        }
        let measurement = read_measurement(&mut scanner)?;
        let head = self.read_head(&mut scanner, names)?;
        if scanner.peek() != Some(b' ') {
            return Err((LineFault::MissingFields, scanner.at));
        }
        let first = out.len();
        let outcome = self.read_fields(&mut scanner, measurement, &head, names, out)?;
        let time_ns = self.read_end(&mut scanner, now_ns)?;
        // The timestamp is the last item.
        for record in &mut out[first..] {
            record.time_ns = time_ns;
        }
        Ok(outcome)
    }

    #[inline]
    fn read_head(&mut self, scanner: &mut Scanner<'_>, names: &mut Names) -> Result<Head, Fault> {
        let line = scanner.line;
        let tenant = self.tags.read(scanner, &self.config.tenant_tag)?;
        let labels = names.get(self.tags.labels(line, &mut self.text)?);
        let tenant = match tenant {
            None => Arc::clone(&self.config.tenant_default),
            Some(tenant) => {
                let name = tenant.meaning(line, KEY, &mut self.text);
                names.get(short(name, tenant.start)?)
            }
        };
        Ok(Head { tenant, labels })
    }

    #[inline]
    fn read_fields(
        &mut self,
        scanner: &mut Scanner<'_>,
        measurement: Token,
        head: &Head,
        names: &mut Names,
        out: &mut Vec<UsageRecord>,
    ) -> Result<LineOutcome, Fault> {
        let mut outcome = LineOutcome::default();
        let start = scanner.at;
        scanner.skip_spaces();
        loop {
            let key = read_field_key(scanner)?;
            match read_value(scanner)? {
                None => outcome.fields_skipped += 1,
                Some(quantity) => {
                    outcome.records += 1;
                    out.push(UsageRecord {
                        tenant: Arc::clone(&head.tenant),
                        meter: self.meter(scanner.line, measurement, key, names)?,
                        quantity,
                        time_ns: 0,
                        labels: Arc::clone(&head.labels),
                    });
                }
            }
            if scanner.peek() != Some(b',') {
                break;
            }
            scanner.at += 1;
        }
        if outcome.records == 0 { Err((LineFault::NoNumericField, start)) } else { Ok(outcome) }
    }

    /// Meter name: the measurement, and the field's name after a point unless that is `value`.
    #[inline]
    fn meter(
        &mut self,
        line: &str,
        measurement: Token,
        key: Token,
        names: &mut Names,
    ) -> Result<Arc<str>, Fault> {
        let measured = measurement.meaning(line, MEASUREMENT, &mut self.measurement);
        if key.raw(line) == VALUE_FIELD {
            return Ok(names.get(short(measured, measurement.start)?));
        }
        self.text.clear();
        self.text.push_str(measured);
        self.text.push('.');
        super::token::push_unescaped(key.raw(line), KEY, &mut self.text);
        Ok(names.get(short(&self.text, key.start)?))
    }

    /// Timestamp at the end of a line.
    #[inline]
    fn read_end(&self, scanner: &mut Scanner<'_>, now_ns: i64) -> Result<i64, Fault> {
        scanner.skip_spaces();
        if scanner.peek().is_none() {
            return Ok(now_ns);
        }
        let time_ns = read_time(scanner, self.config.precision)?;
        scanner.skip_spaces();
        match scanner.peek() {
            None => Ok(time_ns),
            Some(_) => Err((LineFault::TrailingText, scanner.at)),
        }
    }
}

#[inline]
fn read_measurement(scanner: &mut Scanner<'_>) -> Result<Token, Fault> {
    let measurement = scanner.token(MEASUREMENT)?;
    if measurement.is_empty() {
        return Err((LineFault::MissingMeasurement, scanner.at));
    }
    Ok(measurement)
}

#[inline]
fn read_field_key(scanner: &mut Scanner<'_>) -> Result<Token, Fault> {
    let start = scanner.at;
    let key = scanner.token(KEY)?;
    match (key.is_empty(), scanner.peek()) {
        (true, None) => Err((LineFault::MissingFields, start)),
        (true, _) => Err((LineFault::MissingKey, start)),
        (false, _) => scanner.equals().map(|()| key),
    }
}

#[inline]
fn short(name: &str, at: usize) -> Result<&str, Fault> {
    if name.len() <= NAME_BYTES_MAX { Ok(name) } else { Err((LineFault::NameTooLong, at)) }
}
