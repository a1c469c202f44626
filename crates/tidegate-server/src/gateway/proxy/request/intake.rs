use super::model_scan::{ModelScan, Scanned};
use crate::gateway::proxy::error::ProxyError;
use crate::http::client::{UploadBody, UploadWatch, plus};
use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// A request whose answer is being decided, and what was read of its body ahead of sending it.
pub struct Intake {
    pub parts: Parts,
    body: Incoming,
    ahead: VecDeque<Frame<Bytes>>,
    /// Bytes in `ahead`.
    held: usize,
}

/// The largest body of a request that may be sent twice. Most are far smaller; a larger one is sent once.
const REPLAY_MAX: u64 = 64 * 1024;

// === impl Intake ===

impl Intake {
    pub fn new(request: Request<Incoming>) -> Self {
        let (parts, body) = request.into_parts();
        Self { parts, body, ahead: VecDeque::new(), held: 0 }
    }

    /// The length of the body, when its head tells it.
    pub fn length(&self) -> Option<u64> {
        self.size().exact()
    }

    /// Returns true if nothing of the body is left to be read from the client.
    pub fn is_read(&self) -> bool {
        self.body.is_end_stream()
    }

    /// Returns true if the body is empty.
    pub fn is_empty(&self) -> bool {
        self.is_read() && self.ahead.is_empty()
    }

    /// Returns true if the body may name a model.
    pub fn may_name_a_model(&self) -> bool {
        // Not by its content type, which is easily forgotten: what is no JSON object says so in its first byte.
        self.parts.method == Method::POST && !self.is_read()
    }

    /// Reads on until the model is known, and no more than this many bytes, of which all are kept to be sent.
    ///
    /// # Errors
    ///
    /// When the client breaks off, or has not sent that much within `limit`.
    pub async fn find_model(
        &mut self,
        bytes_max: usize,
        limit: Duration,
    ) -> Result<Option<String>, ProxyError> {
        let looking = async {
            let mut scan = ModelScan::new();
            while self.held < bytes_max {
                let Some(piece) = self.read().await? else { break };
                match scan.feed(&piece) {
                    Scanned::More => {}
                    Scanned::Model(name) => return Ok(Some(name)),
                    Scanned::None => break,
                }
            }
            Ok(None)
        };
        Box::pin(within(limit, looking)).await
    }

    /// Reads the body to its end if it is short, so that the request can be sent again. Says whether it was.
    ///
    /// # Errors
    ///
    /// When the client breaks off, or has not sent all of it within `limit`.
    pub async fn keep_if_short(&mut self, limit: Duration) -> Result<bool, ProxyError> {
        if self.length().is_none_or(|length| length > REPLAY_MAX) {
            return Ok(false);
        }
        let reading = async {
            while self.read().await?.is_some() {}
            Ok(true)
        };
        Box::pin(within(limit, reading)).await
    }

    /// The whole body, if it was read to its end, for a second attempt.
    pub fn copy(&self) -> Option<Vec<Bytes>> {
        let pieces = || self.ahead.iter().map(|frame| frame.data_ref().cloned());
        if self.is_read() { pieces().collect() } else { None }
    }

    /// The body on its way out, with what was read of it in front.
    pub fn into_upload(self) -> (Parts, UploadBody, Option<Arc<UploadWatch>>) {
        let (body, watch) = UploadBody::new(self.ahead, self.body);
        (self.parts, body, watch)
    }

    /// The unread rest of the body.
    pub fn into_unread(self) -> Incoming {
        self.body
    }

    /// The next piece of the body, kept too. `None` at its end.
    async fn read(&mut self) -> Result<Option<Bytes>, ProxyError> {
        loop {
            let frame = match poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx)).await {
                None => return Ok(None),
                Some(Err(_)) => return Err(ProxyError::UploadBroken),
                Some(Ok(frame)) => frame,
            };
            let data = frame.data_ref().cloned();
            self.ahead.push_back(frame);
            if let Some(data) = data {
                self.held += data.len();
                return Ok(Some(data));
            }
        }
    }

    fn size(&self) -> SizeHint {
        plus(self.body.size_hint(), self.held as u64)
    }
}

/// One limit for the whole of it: a client that sends a byte now and then would hold what it holds for ever.
async fn within<T>(
    limit: Duration,
    reading: impl Future<Output = Result<T, ProxyError>>,
) -> Result<T, ProxyError> {
    let stalled = Err(ProxyError::UploadStalled { after: limit });
    timeout(limit, reading).await.unwrap_or(stalled)
}
