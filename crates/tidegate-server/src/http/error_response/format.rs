use crate::http::ResponseBody;
use crate::http::request::is_grpc;
use http::header::{self, HeaderValue};
use http::{Method, Request, Response, Version};
use http_body::Body;

/// The format of a response that the client can read. Copied out of the request's head, which is gone by the
/// time that something fails.
#[derive(Clone, Copy, Debug)]
pub struct ResponseFormat {
    /// The client speaks gRPC, and reads nothing else.
    pub grpc: bool,
    /// The client wants the head of a response alone.
    head: bool,
    /// The client speaks HTTP/1.x, where the unread rest of a request stands before the next one.
    http1: bool,
}

/// The state of a request's body when its response is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// All of it was read.
    None,
    /// Some of it may be unread.
    Some,
}

// === impl ResponseFormat ===

impl ResponseFormat {
    /// The format that the head of a request asks for.
    #[must_use]
    pub fn of<B>(request: &Request<B>) -> Self {
        Self {
            grpc: is_grpc(request.headers()),
            head: request.method() == Method::HEAD,
            http1: request.version() <= Version::HTTP_11,
        }
    }

    /// Fits a response to the format: the answer to HEAD has no body, also over HTTP/2, and a connection on which
    /// a request was left unread says that it ends.
    #[must_use]
    pub fn fit(self, mut response: Response<ResponseBody>, body: Unread) -> Response<ResponseBody> {
        if self.head {
            let length = response.body().size_hint().exact().unwrap_or(0);
            response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
            *response.body_mut() = ResponseBody::EMPTY;
        }
        if self.http1 && body == Unread::Some {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}
