use std::fmt;
use std::process::ExitCode;
use tidegate_server::config::Mistakes;

/// Why a command ends early; the exit code is part of the interface.
#[derive(Debug)]
pub enum Failure {
    /// What was typed or configured is wrong: 2, as for unknown flags.
    Usage(String),
    /// It was right and still did not work: 1.
    Runtime(String),
}

// === impl Failure ===

impl Failure {
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::Runtime(_) => ExitCode::FAILURE,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Usage(message) | Self::Runtime(message)) = self;
        f.write_str(message)
    }
}

impl From<Mistakes> for Failure {
    fn from(mistakes: Mistakes) -> Self {
        Self::Usage(mistakes.to_string())
    }
}
