use super::auth;
use crate::frame::{LABELS_BYTES_MAX, NAME_BYTES_MAX};
use std::fmt;

/// Maximum length of an excerpt, in characters.
const EXCERPT_CHARS_MAX: usize = 80;

/// Error of a line, with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineError {
    /// Fault of the line.
    pub fault: LineFault,
    /// Byte offset in the line, from 1.
    pub column: usize,
    /// Excerpt around the position, safe to log: at most 80 characters, with everything unusual escaped.
    pub excerpt: String,
}

/// Fault of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LineFault {
    /// Longer than the limit. The line was skipped.
    LineTooLong,
    /// Not UTF-8.
    NotUtf8,
    /// Control character outside of quotes.
    ControlCharacter,
    /// Starts with a comma.
    MissingMeasurement,
    /// Tag or field without a name.
    MissingKey,
    /// Tag or field without an equals sign.
    MissingEquals,
    /// Tag or field without a value.
    MissingValue,
    /// Unescaped equals sign in the value of a tag.
    UnescapedEquals,
    /// Repeated tag.
    DuplicateTag,
    /// Ends before its fields.
    MissingFields,
    /// Unterminated quotes.
    UnterminatedString,
    /// Text between closing quotes and the next comma or space.
    TextAfterString,
    /// Value that is neither a number nor a boolean nor quoted.
    BadNumber,
    /// Number out of range.
    NumberOutOfRange,
    /// Timestamp that is no integer.
    BadTime,
    /// Timestamp out of range of 64-bit nanoseconds.
    TimeOutOfRange,
    /// Text after the timestamp.
    TrailingText,
    /// No field is a number.
    NoNumericField,
    /// Tenant or meter longer than 128 bytes.
    NameTooLong,
    /// Tags longer than 1,024 bytes together.
    LabelsTooLong,
}

// === impl LineError ===

impl LineError {
    /// Creates an error at the byte of this index.
    #[cold]
    pub(super) fn new(fault: LineFault, line: &[u8], index: usize) -> Self {
        // Context before the position helps more than a column.
        let start = index.saturating_sub(EXCERPT_CHARS_MAX / 2).min(line.len());
        let end = line.len().min(start + EXCERPT_CHARS_MAX);
        let escaped = line[start..end].escape_ascii().map(char::from);
        // A token that stands where none is expected must not reach a log.
        let excerpt = match line.trim_ascii_start().starts_with(auth::WORD) {
            true => "auth ***".to_owned(),
            false => escaped.take(EXCERPT_CHARS_MAX).collect(),
        };
        Self { fault, column: index + 1, excerpt }
    }

    /// Stable name for metric labels and logs.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        self.fault.reason()
    }
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {} (near `{}`)", self.column, self.fault, self.excerpt)
    }
}

impl std::error::Error for LineError {}

// === impl LineFault ===

impl LineFault {
    /// Every fault.
    pub const ALL: [Self; 20] = [
        Self::LineTooLong,
        Self::NotUtf8,
        Self::ControlCharacter,
        Self::MissingMeasurement,
        Self::MissingKey,
        Self::MissingEquals,
        Self::MissingValue,
        Self::UnescapedEquals,
        Self::DuplicateTag,
        Self::MissingFields,
        Self::UnterminatedString,
        Self::TextAfterString,
        Self::BadNumber,
        Self::NumberOutOfRange,
        Self::BadTime,
        Self::TimeOutOfRange,
        Self::TrailingText,
        Self::NoNumericField,
        Self::NameTooLong,
        Self::LabelsTooLong,
    ];

    /// Stable name for metric labels and logs.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::LineTooLong => "line_too_long",
            Self::NotUtf8 => "not_utf8",
            Self::ControlCharacter => "control_character",
            Self::MissingMeasurement => "missing_measurement",
            Self::MissingKey => "missing_key",
            Self::MissingEquals => "missing_equals",
            Self::MissingValue => "missing_value",
            Self::UnescapedEquals => "unescaped_equals",
            Self::DuplicateTag => "duplicate_tag",
            Self::MissingFields => "missing_fields",
            Self::UnterminatedString => "unterminated_string",
            Self::TextAfterString => "text_after_string",
            Self::BadNumber => "bad_number",
            Self::NumberOutOfRange => "number_out_of_range",
            Self::BadTime => "bad_time",
            Self::TimeOutOfRange => "time_out_of_range",
            Self::TrailingText => "trailing_text",
            Self::NoNumericField => "no_numeric_field",
            Self::NameTooLong => "name_too_long",
            Self::LabelsTooLong => "labels_too_long",
        }
    }

    /// Index into arrays over all faults.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for LineFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::LineTooLong => "line too long",
            Self::NotUtf8 => "not UTF-8",
            Self::ControlCharacter => "a control character",
            Self::MissingMeasurement => "expected a measurement",
            Self::MissingKey => "expected a name before `=`",
            Self::MissingEquals => "expected `=` and a value",
            Self::MissingValue => "expected a value behind `=`",
            Self::UnescapedEquals => "expected `\\=`: an equals sign in a tag's value is escaped",
            Self::DuplicateTag => "duplicate tag",
            Self::MissingFields => "expected a space and a field, such as ` value=1`",
            Self::UnterminatedString => "a quoted string that does not end in this line",
            Self::TextAfterString => "expected a comma or a space behind a quoted string",
            Self::BadNumber => "expected a number, a boolean or a quoted string",
            Self::NumberOutOfRange => "number out of range: at most about 7.9e28",
            Self::BadTime => "expected an integer as the timestamp",
            Self::TimeOutOfRange => "a timestamp beyond the years 1677 to 2262",
            Self::TrailingText => "expected the end of the line",
            Self::NoNumericField => "no field is a number: there is nothing to count",
            Self::NameTooLong => return write!(f, "a name of more than {NAME_BYTES_MAX} bytes"),
            Self::LabelsTooLong => return write!(f, "tags of more than {LABELS_BYTES_MAX} bytes"),
        };
        f.write_str(text)
    }
}
