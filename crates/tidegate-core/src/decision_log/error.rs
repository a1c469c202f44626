use std::fmt;

/// A line that does not follow the format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatError {
    what: String,
}

// === impl FormatError ===

impl FormatError {
    pub(super) fn new(what: String) -> Self {
        Self { what }
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for FormatError {}
