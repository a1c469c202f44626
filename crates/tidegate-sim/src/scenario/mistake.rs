use std::fmt;

/// One thing that is wrong with a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Where: a key, or several with dots between.
    pub at: String,
    /// What is wrong there, and what it should be.
    pub what: String,
}

/// A scenario that can't be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScenarioError {
    /// Its text is no TOML, has an unknown key or a value of the wrong type; with the place.
    Syntax(String),
    /// It can be read, but contradicts itself. Everything that is wrong, at once.
    Mistakes(Vec<Mistake>),
}

// === impl ScenarioError ===

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(text) => f.write_str(text.trim_end()),
            Self::Mistakes(mistakes) => {
                let lines: Vec<_> = mistakes.iter().map(ToString::to_string).collect();
                f.write_str(&lines.join("\n"))
            }
        }
    }
}

impl std::error::Error for ScenarioError {}

// === impl Mistake ===

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.what)
    }
}
