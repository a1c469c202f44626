use super::UploadBody;
use http::Request;
use http::request::Parts;
use std::{fmt, io};

/// A request without a response.
#[derive(thiserror::Error)]
#[error("{error}")]
pub struct SendError {
    error: ClientError,
    unsent: Option<Box<Request<UploadBody>>>,
    head: Option<Box<Parts>>,
}

/// The failure of an exchange with an endpoint.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// HTTP/2 failed.
    #[error(transparent)]
    Http2(#[from] hyper::Error),
    /// The connection failed.
    #[error("connection error: {0}")]
    Io(#[from] io::Error),
    /// The endpoint closed the connection before the end of the response.
    #[error("connection closed before the end of the response")]
    Closed,
    /// The response is no HTTP/1.1.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The endpoint sent more informational responses than it may.
    #[error("too many informational responses")]
    Informational,
    /// The request's body broke off, or is not as long as its head says.
    #[error("the request's body broke off")]
    Upload,
}

/// The fault of a response that is no HTTP/1.1, or that two readers could frame in two ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed response: {0}")]
pub struct Malformed(pub &'static str);

// === impl SendError ===

impl SendError {
    /// The failure of a request that was not sent, and can be sent elsewhere.
    pub(super) fn unsent(error: ClientError, request: Request<UploadBody>) -> Self {
        Self { error, unsent: Some(Box::new(request)), head: None }
    }

    /// Takes the request, if it was certainly not sent.
    pub fn take_unsent(&mut self) -> Option<Box<Request<UploadBody>>> {
        self.unsent.take()
    }

    /// The failure of a request with this head, which may have been sent.
    pub(super) fn sent(error: ClientError, head: Option<Parts>) -> Self {
        Self { error, unsent: None, head: head.map(Box::new) }
    }

    /// Takes the head of a request that may have been sent, if it is still here: over HTTP/1.1 it is.
    pub fn take_head(&mut self) -> Option<Box<Parts>> {
        self.head.take()
    }

    /// The failure.
    #[must_use]
    pub fn into_error(self) -> ClientError {
        self.error
    }
}

impl fmt::Debug for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { error, unsent, .. } = self;
        f.debug_struct("SendError")
            .field("error", error)
            .field("unsent", &unsent.is_some())
            .finish()
    }
}

impl From<ClientError> for SendError {
    fn from(error: ClientError) -> Self {
        Self::sent(error, None)
    }
}
