use crate::exit_code;
use std::error::Error;
use std::fmt;
use std::process::ExitCode;
use tidegate_server::config::ConfigErrors;
use tidegate_server::ingest::IngestError;

/// Reason why a command ends early; it decides the exit code.
#[derive(Debug)]
pub enum Failure {
    /// A flag or the configuration is wrong: exit code 2.
    Usage(String),
    /// The command failed while it ran: exit code 1.
    Runtime(String),
}

// === impl Failure ===

impl Failure {
    /// A runtime failure with the text of this error.
    pub fn runtime(error: impl Error) -> Self {
        Self::Runtime(error.to_string())
    }

    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(exit_code::USAGE),
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

impl From<ConfigErrors> for Failure {
    fn from(errors: ConfigErrors) -> Self {
        Self::Usage(errors.to_string())
    }
}

impl From<IngestError> for Failure {
    /// Wrong tariffs, pipeline settings and TLS files are errors of the configuration.
    fn from(error: IngestError) -> Self {
        match error {
            IngestError::Tariffs(_) | IngestError::Pipeline(_) | IngestError::Tls(_) => {
                Self::Usage(error.to_string())
            }
            _ => Self::runtime(error),
        }
    }
}
