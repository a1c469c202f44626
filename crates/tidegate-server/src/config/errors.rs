use super::Origin;
use std::fmt;
use std::ops::Deref;

/// One error in the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The key it is about, such as `admission.high_limit` or `client[2].token`; entries count from 1.
    pub field: String,
    /// The origin of the value.
    pub origin: Origin,
    /// The given value; never a secret.
    pub given: String,
    /// The accepted values, with unit and range.
    pub allowed: String,
    /// The nearest known name, if the given one is unknown.
    pub suggestion: Option<String>,
}

/// All errors in the configuration, at least one; in the order of the file, then of the environment, then of the
/// flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors(Vec<ConfigError>);

/// The errors that are found while the configuration is read.
pub(super) type ErrorList = Vec<ConfigError>;

// === impl ConfigError ===

impl ConfigError {
    pub(super) fn new(
        field: impl Into<String>,
        origin: &Origin,
        given: impl Into<String>,
        allowed: impl Into<String>,
    ) -> Self {
        let (field, given, allowed) = (field.into(), given.into(), allowed.into());
        Self { field, origin: origin.clone(), given, allowed, suggestion: None }
    }

    pub(super) fn suggest(mut self, suggestion: Option<impl Into<String>>) -> Self {
        self.suggestion = suggestion.map(Into::into);
        self
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, origin, given, allowed, suggestion } = self;
        write!(f, "{} ({origin}): given {given}; allowed: {allowed}", one_line(field))?;
        suggestion.iter().try_for_each(|near| write!(f, "; did you mean {near}?"))
    }
}

// === impl ConfigErrors ===

impl ConfigErrors {
    /// Returns `Ok` if there are no errors.
    pub(super) fn check(mut errors: ErrorList) -> Result<(), Self> {
        errors.sort_by(|a, b| a.origin.cmp(&b.origin));
        if errors.is_empty() { Ok(()) } else { Err(Self(errors)) }
    }
}

impl Deref for ConfigErrors {
    type Target = [ConfigError];

    fn deref(&self) -> &[ConfigError] {
        &self.0
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.0.len() == 1 { "error" } else { "errors" };
        write!(f, "{} {plural} in the configuration:", self.0.len())?;
        self.0.iter().try_for_each(|error| write!(f, "\n  {error}"))
    }
}

impl std::error::Error for ConfigErrors {}

impl From<ConfigError> for ConfigErrors {
    fn from(error: ConfigError) -> Self {
        Self(vec![error])
    }
}

/// Input in quotes, escaped to one line and shortened.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", one_line(text))
}

fn one_line(text: &str) -> String {
    const QUOTED_CHARS_MAX: usize = 80;
    let line = text.chars().take(QUOTED_CHARS_MAX).flat_map(char::escape_debug);
    line.chain(text.chars().nth(QUOTED_CHARS_MAX).map(|_| '…')).collect()
}
