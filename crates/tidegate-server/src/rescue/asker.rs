use crate::proxy::{GatewayBody, is_grpc};
use http::header::{self, HeaderValue};
use http::{Method, Request, Response, Version};
use http_body::Body;

/// How the one who asked wants to be answered. Copied out of the head, because the head is gone by the time
/// that something fails.
#[derive(Clone, Copy, Debug)]
pub struct Asker {
    /// It speaks gRPC, and understands nothing else.
    pub grpc: bool,
    /// It wants the head of an answer alone.
    head: bool,
    /// It speaks HTTP/1.x, where what is left of a request stands before the next one.
    http1: bool,
}

/// Whether something of a request is left that was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// It was read to its end.
    None,
    /// There may be more.
    Some,
}

// === impl Asker ===

impl Asker {
    /// Reads what matters from a request that is about to be decided.
    #[must_use]
    pub fn of<B>(request: &Request<B>) -> Self {
        Self {
            grpc: is_grpc(request.headers()),
            head: request.method() == Method::HEAD,
            http1: request.version() <= Version::HTTP_11,
        }
    }

    /// Fits an answer of ours to the one who asked: a head has no body, also over HTTP/2, and a connection on
    /// which a request was left unread says that it ends.
    #[must_use]
    pub fn fit(self, mut response: Response<GatewayBody>, body: Unread) -> Response<GatewayBody> {
        if self.head {
            let length = response.body().size_hint().exact().unwrap_or(0);
            response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
            *response.body_mut() = GatewayBody::EMPTY;
        }
        if self.http1 && body == Unread::Some {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}
