use std::fmt;

/// One thing that is wrong with a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Where: a key, or several with dots between.
    pub at: String,
    /// The error, and the allowed values.
    pub what: String,
}

/// A scenario that can't be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScenarioError {
    /// The text is not TOML, or has an unknown key or a value of the wrong type; with its position.
    Syntax(String),
    /// Values that are out of range or contradict each other. All errors at once.
    Invalid(Vec<FieldError>),
}

// === impl ScenarioError ===

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(text) => f.write_str(text.trim_end()),
            Self::Invalid(errors) => {
                let lines: Vec<_> = errors.iter().map(ToString::to_string).collect();
                f.write_str(&lines.join("\n"))
            }
        }
    }
}

impl std::error::Error for ScenarioError {}

// === impl FieldError ===

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.what)
    }
}
