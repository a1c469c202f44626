//! The one place where something that went wrong in the mock becomes an HTTP status, in the form that OpenAI's
//! clients understand.

use super::body::MockBody;
use super::engine::Refused;
use super::work::WorkRefused;
use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::{Response, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;

/// Why a request is not answered as it asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// A field is missing or wrong.
    Invalid { param: Option<&'static str>, message: String },
    /// The prompt and what is to come of it are too long.
    ContextLength { message: String },
    /// No such model.
    UnknownModel { model: String },
    /// The path is known and the method is not.
    Method { allow: &'static str },
    /// There is nothing here, or it is switched off.
    NotFound { message: &'static str },
    /// Only for clients on this machine.
    Forbidden,
    /// The body has more bytes than this.
    TooLarge { limit_bytes: usize },
    /// The body did not come.
    Stalled,
    /// Every place is taken.
    Overloaded { retry_after: Duration },
    /// A fault that was asked for.
    Injected,
}

/// The parts of an answer to a problem.
struct Parts {
    status: StatusCode,
    kind: &'static str,
    code: Option<&'static str>,
    param: Option<&'static str>,
    message: String,
}

// === impl Problem ===

impl Problem {
    pub(super) fn invalid(param: Option<&'static str>, message: String) -> Self {
        Self::Invalid { param, message }
    }

    pub(super) fn missing(param: &'static str) -> Self {
        Self::invalid(Some(param), format!("You must provide '{param}'."))
    }

    pub(super) fn answer(self) -> Response<MockBody> {
        let headers = match &self {
            Self::Method { allow } => Some((header::ALLOW, HeaderValue::from_static(allow))),
            Self::Overloaded { retry_after } => {
                Some((header::RETRY_AFTER, HeaderValue::from(whole_seconds(*retry_after))))
            }
            Self::Injected => Some((header::RETRY_AFTER, HeaderValue::from(1))),
            _ => None,
        };
        let parts = self.parts();
        let error = json!({"error": {
            "message": parts.message,
            "type": parts.kind,
            "param": parts.param,
            "code": parts.code,
        }});
        let mut response = json_answer(parts.status, &error);
        response.headers_mut().extend(headers);
        response
    }

    fn parts(self) -> Parts {
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
                format!("This path answers to {allow}."),
            ),
            Self::NotFound { message } => of(StatusCode::NOT_FOUND, None, message.to_owned()),
            Self::Forbidden => of(
                StatusCode::FORBIDDEN,
                None,
                "Faults are for clients on the same machine.".to_owned(),
            ),
            Self::TooLarge { limit_bytes } => of(
                StatusCode::PAYLOAD_TOO_LARGE,
                None,
                format!("The body has more than {limit_bytes} bytes."),
            ),
            Self::Stalled => {
                of(StatusCode::REQUEST_TIMEOUT, None, "The body did not come in time.".to_owned())
            }
            Self::Overloaded { .. } => of(
                StatusCode::SERVICE_UNAVAILABLE,
                Some("overloaded"),
                "The engine is currently overloaded, please try again later.".to_owned(),
            ),
            Self::Injected => of(
                StatusCode::SERVICE_UNAVAILABLE,
                Some("injected_fault"),
                "This request fails because the mock was told to fail.".to_owned(),
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
                Self::invalid(Some("blocks"), format!("This can never begin: {refused}."))
            }
        }
    }
}

/// Rounded up, and never "at once".
fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0 || time.is_zero())
}

/// An answer that is a JSON document.
pub(super) fn json_answer(status: StatusCode, value: &Value) -> Response<MockBody> {
    text_answer(status, "application/json", format!("{value}\n"))
}

/// The answer to work that is done. The same every time, because drills ask for thousands a second.
pub(super) fn done_answer() -> Response<MockBody> {
    let mut response = Response::new(MockBody::text(Bytes::from_static(b"{\"done\":true}\n")));
    let content_type = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}

/// An answer that is a text.
pub(super) fn text_answer(
    status: StatusCode,
    content_type: &'static str,
    text: String,
) -> Response<MockBody> {
    let mut response = Response::new(MockBody::text(Bytes::from(text)));
    *response.status_mut() = status;
    let content_type = HeaderValue::from_static(content_type);
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}
