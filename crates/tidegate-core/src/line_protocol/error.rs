use crate::frame::{LABELS_BYTES_MAX, NAME_BYTES_MAX};
use std::fmt;

/// How much of a line an error shows.
const EXCERPT_CHARS_MAX: usize = 80;

/// What is wrong with a line, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineError {
    /// What.
    pub fault: LineFault,
    /// At which byte of the line, from 1.
    pub column: usize,
    /// What stands around there, safe to log: 80 characters at the most, with everything unusual escaped.
    pub excerpt: String,
}

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LineFault {
    /// It is longer than a line may be. It was passed over to its end.
    LineTooLong,
    /// It is not UTF-8.
    NotUtf8,
    /// A control character outside of quotes.
    ControlCharacter,
    /// It begins with a comma.
    MissingMeasurement,
    /// A tag or a field without a name.
    MissingKey,
    /// A tag or a field without an equals sign.
    MissingEquals,
    /// A tag or a field without a value.
    MissingValue,
    /// An equals sign in the value of a tag, without a backslash before it.
    UnescapedEquals,
    /// A tag that was there before.
    DuplicateTag,
    /// It ends before its fields.
    MissingFields,
    /// Quotes that are not closed.
    UnterminatedString,
    /// Something between closing quotes and the next comma or space.
    TextAfterString,
    /// A value that is neither a number nor a boolean nor quoted.
    BadNumber,
    /// A number that is greater than a quantity can be.
    NumberOutOfRange,
    /// A timestamp that is no integer.
    BadTime,
    /// A timestamp that nanoseconds in 64 bits can't count.
    TimeOutOfRange,
    /// Something follows the timestamp.
    TrailingText,
    /// Fields, but none that is a number.
    NoNumericField,
    /// A tenant or a meter that is longer than 128 bytes.
    NameTooLong,
    /// Tags that are longer than 1,024 bytes together.
    LabelsTooLong,
}

// === impl LineError ===

impl LineError {
    /// At the byte of this index.
    #[cold]
    pub(super) fn new(fault: LineFault, line: &[u8], index: usize) -> Self {
        // Some of what came before says more than a column.
        let start = index.saturating_sub(EXCERPT_CHARS_MAX / 2).min(line.len());
        let end = line.len().min(start + EXCERPT_CHARS_MAX);
        let escaped = line[start..end].escape_ascii().map(char::from);
        let excerpt = escaped.take(EXCERPT_CHARS_MAX).collect();
        Self { fault, column: index + 1, excerpt }
    }

    /// A stable name, for labels of metrics and for logs.
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

    /// A stable name, for labels of metrics and for logs.
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

    /// This fault's place in an array.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for LineFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::LineTooLong => "longer than a line may be",
            Self::NotUtf8 => "not UTF-8",
            Self::ControlCharacter => "a control character",
            Self::MissingMeasurement => "expected a measurement",
            Self::MissingKey => "expected a name before `=`",
            Self::MissingEquals => "expected `=` and a value",
            Self::MissingValue => "expected a value behind `=`",
            Self::UnescapedEquals => "expected `\\=`: an equals sign in a tag's value is escaped",
            Self::DuplicateTag => "a tag that was there before",
            Self::MissingFields => "expected a space and a field, such as ` value=1`",
            Self::UnterminatedString => "a quoted string that does not end in this line",
            Self::TextAfterString => "expected a comma or a space behind a quoted string",
            Self::BadNumber => "expected a number, a boolean or a quoted string",
            Self::NumberOutOfRange => "a number greater than a quantity can be, about 7.9e28",
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
