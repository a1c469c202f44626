use std::fmt;

/// Maximum length of quoted input in a message, in characters.
const QUOTED_CHARS_MAX: usize = 80;

/// Error in a tariff file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TariffDiagnostic {
    /// Line number, from 1.
    pub line: usize,
    /// Subject, such as `tariff "standard", window 2, price`; empty for the whole file.
    pub about: String,
    /// Description of the error.
    pub wrong: String,
    /// Expected value.
    pub expected: String,
    /// Suggested correction.
    pub fix: String,
}

/// All errors in a tariff file, ordered by line; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TariffDiagnostics {
    name: String,
    all: Vec<TariffDiagnostic>,
}

/// Warning about a tariff file that is valid but probably not intended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileWarning {
    /// Line number, from 1.
    pub line: usize,
    /// Subject, as in [`TariffDiagnostic::about`].
    pub about: String,
    /// Consequence.
    pub text: String,
}

// === impl TariffDiagnostic ===

impl fmt::Display for TariffDiagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, about, wrong, expected, fix } = self;
        write!(f, "{line}: {}{wrong}; expected {expected}; {fix}", prefix(about))
    }
}

// === impl TariffDiagnostics ===

impl TariffDiagnostics {
    pub(super) fn new(name: String, mut all: Vec<TariffDiagnostic>) -> Self {
        all.sort_by_key(|error| error.line);
        Self { name, all }
    }

    /// All errors.
    pub fn iter(&self) -> impl Iterator<Item = &TariffDiagnostic> {
        self.all.iter()
    }
}

impl fmt::Display for TariffDiagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.all.len() == 1 { "error" } else { "errors" };
        write!(f, "{} {plural} in the tariffs:", self.all.len())?;
        self.all.iter().try_for_each(|error| write!(f, "\n  {}:{error}", self.name))
    }
}

impl std::error::Error for TariffDiagnostics {}

// === impl FileWarning ===

impl fmt::Display for FileWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}{}", self.line, prefix(&self.about), self.text)
    }
}

fn prefix(about: &str) -> String {
    if about.is_empty() { String::new() } else { format!("{about}: ") }
}

/// Quotes input text, on one line and truncated.
pub(super) fn quoted(text: &str) -> String {
    let mut chars = text.chars();
    let mut line: String =
        chars.by_ref().take(QUOTED_CHARS_MAX).flat_map(char::escape_debug).collect();
    if chars.next().is_some() {
        line.push('…');
    }
    format!("\"{line}\"")
}
