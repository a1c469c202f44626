use crate::http::ResponseBody;
use crate::http::error_response::{ErrorKind, ErrorResponse, ResponseFormat};
use http::Response;

/// A request whose token is missing, unknown, or not enough.
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
    /// The token is a client's, and the request is for operators.
    #[error("this needs the token of an operator")]
    NotOperator,
}

// === impl Unauthorized ===

impl Unauthorized {
    /// The response to such a request.
    #[must_use]
    pub fn respond(self, format: ResponseFormat) -> Response<ResponseBody> {
        let (kind, reason) = match self {
            Self::Missing => (ErrorKind::Unauthorized, "token_missing"),
            Self::Unknown => (ErrorKind::Unauthorized, "token_unknown"),
            Self::NotOperator => (ErrorKind::Forbidden, "operator_only"),
        };
        ErrorResponse::new(kind, reason, &self.to_string()).respond(format)
    }
}
