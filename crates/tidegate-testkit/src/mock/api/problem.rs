//! HTTP status and body of every error of the mock, in OpenAI's format.

use crate::mock::engine::Refused;
use crate::mock::work::WorkRefused;
use http::StatusCode;
use std::time::Duration;

/// Error of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// A field is missing or invalid.
    Invalid { param: Option<&'static str>, message: String },
    /// Prompt and output exceed the context length.
    ContextLength { message: String },
    /// The model is unknown.
    UnknownModel { model: String },
    /// The path does not allow the method.
    Method { allow: &'static str },
    /// The path does not exist or is disabled.
    NotFound { message: &'static str },
    /// The path is for clients on this machine only.
    Forbidden,
    /// The body exceeds this limit.
    TooLarge { limit_bytes: usize },
    /// The body did not arrive in time.
    Stalled,
    /// All slots and the queue are full.
    Overloaded { retry_after: Duration },
    /// An injected fault.
    Injected,
}

/// Parts of an error response.
pub(super) struct Parts {
    pub(super) status: StatusCode,
    pub(super) kind: &'static str,
    pub(super) code: Option<&'static str>,
    pub(super) param: Option<&'static str>,
    pub(super) message: String,
}

// === impl Problem ===

impl Problem {
    pub(super) fn invalid(param: Option<&'static str>, message: String) -> Self {
        Self::Invalid { param, message }
    }

    pub(super) fn missing(param: &'static str) -> Self {
        Self::invalid(Some(param), format!("You must provide '{param}'."))
    }

    /// Status and fields of the response.
    pub(super) fn parts(self) -> Parts {
        let of = |status, code: Option<&'static str>, message: String| Parts {
            status,
            kind: if status.is_server_error() { "server_error" } else { "invalid_request_error" },
            code,
            param: None,
            message,
        };
        match self {
            Self::Invalid { param, message } => {
                Parts { param, ..of(StatusCode::BAD_REQUEST, None, message) }
            }
            Self::ContextLength { message } => {
                of(StatusCode::BAD_REQUEST, Some("context_length_exceeded"), message)
            }
            Self::UnknownModel { model } => Parts {
                param: Some("model"),
                ..of(
                    StatusCode::NOT_FOUND,
                    Some("model_not_found"),
                    format!("The model `{model}` does not exist or you do not have access to it."),
                )
            },
            Self::Method { allow } => of(
                StatusCode::METHOD_NOT_ALLOWED,
                Some("method_not_allowed"),
                format!("This path allows {allow}."),
            ),
            Self::NotFound { message } => of(StatusCode::NOT_FOUND, None, message.to_owned()),
            Self::Forbidden => of(
                StatusCode::FORBIDDEN,
                None,
                "Faults can only be set by clients on this machine.".to_owned(),
            ),
            Self::TooLarge { limit_bytes } => of(
                StatusCode::PAYLOAD_TOO_LARGE,
                None,
                format!("The body has more than {limit_bytes} bytes."),
            ),
            Self::Stalled => {
                of(StatusCode::REQUEST_TIMEOUT, None, "The body did not arrive in time.".to_owned())
            }
            Self::Overloaded { .. } => of(
                StatusCode::SERVICE_UNAVAILABLE,
                Some("overloaded"),
                "The engine is currently overloaded, please try again later.".to_owned(),
            ),
            Self::Injected => of(
                StatusCode::SERVICE_UNAVAILABLE,
                Some("injected_fault"),
                "This request fails because of an injected fault.".to_owned(),
            ),
        }
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Full { retry_after } => Self::Overloaded { retry_after },
            Refused::TooLong { needed_tokens, context_tokens } => {
                let message = format!(
                    "This model's maximum context length is {context_tokens} tokens. However, you \
                     requested {needed_tokens} tokens. Please reduce the length of the messages or \
                     completion."
                );
                Self::ContextLength { message }
            }
            Refused::NoSuchRank { .. } => {
                Self::invalid(Some("X-data-parallel-rank"), format!("No such rank: {refused}."))
            }
        }
    }
}

impl From<WorkRefused> for Problem {
    fn from(refused: WorkRefused) -> Self {
        match refused {
            WorkRefused::Full { retry_after } => Self::Overloaded { retry_after },
            WorkRefused::TooLarge { .. } => {
                Self::invalid(Some("blocks"), format!("This work can never start: {refused}."))
            }
        }
    }
}
