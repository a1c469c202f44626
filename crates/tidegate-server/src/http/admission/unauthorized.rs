use crate::http::ResponseBody;
use crate::http::error_response::{ErrorKind, ErrorResponse, ResponseFormat};
use http::Response;

/// A request whose token is missing or unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unauthorized {
    /// None was sent and one is needed.
    #[error(
        "a token is needed: send it as Authorization: Bearer TOKEN, or as tidegate-token: TOKEN"
    )]
    Missing,
    /// No client has this token.
    #[error("the token in the Authorization or tidegate-token header is not known")]
    Unknown,
}

// === impl Unauthorized ===

impl Unauthorized {
    /// The response to such a request.
    #[must_use]
    pub fn respond(self, format: ResponseFormat) -> Response<ResponseBody> {
        let reason = match self {
            Self::Missing => "token_missing",
            Self::Unknown => "token_unknown",
        };
        ErrorResponse::new(ErrorKind::Unauthorized, reason, &self.to_string()).respond(format)
    }
}
