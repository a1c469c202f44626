use crate::http::ResponseBody;
use crate::http::error_response::{ErrorKind, ErrorResponse, ResponseFormat};
use http::Response;

/// A request whose token is missing, unknown, not enough, or not that of its certificate.
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
    /// The token and the names of the client certificate are not those of one client.
    #[error(
        "the token and the client certificate belong to different clients: send one of them, or both of one client"
    )]
    Conflict,
}

// === impl Unauthorized ===

impl Unauthorized {
    /// The response to such a request.
    #[must_use]
    pub fn respond(self, format: ResponseFormat) -> Response<ResponseBody> {
        let (kind, reason) = match self {
            Self::Missing => (ErrorKind::Unauthorized, "token_missing"),
            Self::Unknown => (ErrorKind::Unauthorized, "token_unknown"),
            Self::Conflict => (ErrorKind::Unauthorized, "identity_conflict"),
            Self::NotOperator => (ErrorKind::Forbidden, "operator_only"),
        };
        ErrorResponse::new(kind, reason, &self.to_string()).respond(format)
    }
}
