use super::head::OutgoingHead;
use super::upload::UploadWatch;
use super::{ProxyError, UploadBody};
use crate::gateway::ThreadContext;
use crate::upstream::{Connection, InFlight, Speaks, Tried, Upstream};
use http::{HeaderMap, Method, Request, Response, Uri};
use hyper::body::Incoming;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// What a request needs to be sent a second time: only made when repeating it is safe.
struct Spare {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
}

/// A request that got no answer.
enum Unanswered {
    /// It was not sent, or may safely be sent again.
    Again(Box<Request<UploadBody>>),
    Failed(ProxyError),
}

/// A request that is being offered to upstreams until one answers.
pub struct Offer<'a> {
    pub thread: &'a ThreadContext,
    pub head: &'a OutgoingHead,
    pub upload: Option<Arc<UploadWatch>>,
    pub grpc: bool,
}

// === impl Offer ===

impl Offer<'_> {
    /// Sends the request to an upstream and waits for the head of its answer.
    ///
    /// What certainly was not sent goes to another upstream when one fails; what may have begun is not
    /// repeated, unless it is idempotent, has no body, and failed on a connection that was used before and may
    /// just have been closed; and that once.
    ///
    /// # Errors
    ///
    /// The last failure, when nobody is left to try.
    pub async fn send(
        &self,
        mut request: Request<UploadBody>,
    ) -> Result<(Response<Incoming>, InFlight, Connection), ProxyError> {
        let mut tried = Tried::default();
        let mut last = ProxyError::NoUpstream;
        let mut may_repeat = self.upload.is_none() && request.method().is_idempotent();
        while !tried.is_full() {
            let chance = self.thread.chance.next();
            let Some(upstream) = self.thread.shared.fleet.pick(chance, &tried) else { break };
            let in_flight = upstream.enter();
            let connection = match self.thread.pool.checkout(upstream, self.speaks()).await {
                Ok(connection) => connection,
                Err(source) => {
                    upstream.count_failure();
                    upstream.note(Some(&source));
                    tried.insert(upstream.index);
                    last = ProxyError::Connect { upstream: upstream.name.clone(), source };
                    continue;
                }
            };
            // A connection that was used before may just have been closed, which says nothing about its
            // upstream; but once only, or a peer that takes and drops would be asked for ever.
            let (reused, repeatable) = (connection.was_reused(), may_repeat);
            if !(reused && repeatable) {
                tried.insert(upstream.index);
            }
            match self.attempt(request, upstream, connection, reused && repeatable).await {
                Ok((response, connection)) => return Ok((response, in_flight, connection)),
                Err(Unanswered::Again(again)) => request = *again,
                Err(Unanswered::Failed(error)) => {
                    if !error.is_clients() {
                        upstream.count_failure();
                    }
                    return Err(error);
                }
            }
            may_repeat = false;
        }
        Err(last)
    }

    async fn attempt(
        &self,
        mut request: Request<UploadBody>,
        upstream: &Upstream,
        mut connection: Connection,
        repeatable: bool,
    ) -> Result<(Response<Incoming>, Connection), Unanswered> {
        self.address(&mut request, upstream, connection.is_h2()).map_err(Unanswered::Failed)?;
        let spare = repeatable.then(|| Spare::of(&request));
        let limit = self.thread.shared.config.proxy.response_timeout;
        let answer = {
            let sent = pin!(connection.send(request));
            head_within(limit, sent, self.upload.as_deref()).await
        };
        let mut failure = match answer {
            Ok(Ok(response)) => return Ok((response, connection)),
            Ok(Err(failure)) => failure,
            Err(Late::Upstream) => {
                let upstream = upstream.name.clone();
                let error = ProxyError::ResponseTimeout { upstream, after: limit };
                return Err(Unanswered::Failed(error));
            }
            Err(Late::Client) => {
                return Err(Unanswered::Failed(ProxyError::UploadStalled { after: limit }));
            }
        };
        Err(match (failure.take_message(), spare) {
            (Some(unsent), _) => Unanswered::Again(Box::new(unsent)),
            (None, Some(spare)) => Unanswered::Again(Box::new(spare.into_request())),
            (None, None) if self.upload.as_ref().is_some_and(|upload| upload.is_broken()) => {
                Unanswered::Failed(ProxyError::UploadBroken)
            }
            (None, None) => {
                let (upstream, source) = (upstream.name.clone(), failure.into_error());
                Unanswered::Failed(ProxyError::Reset { upstream, source })
            }
        })
    }

    /// What the request needs spoken. gRPC exists over HTTP/2 alone, switching over HTTP/1.1 alone.
    fn speaks(&self) -> Speaks {
        if self.head.wants_upgrade() {
            Speaks::Http1
        } else if self.grpc {
            Speaks::Http2
        } else {
            Speaks::Either
        }
    }

    fn address(
        &self,
        request: &mut Request<UploadBody>,
        upstream: &Upstream,
        h2: bool,
    ) -> Result<(), ProxyError> {
        let mut uri = std::mem::take(request.uri_mut());
        let policy = self.thread.shared.config.proxy.host;
        *request.version_mut() =
            self.head.address(&mut uri, request.headers_mut(), upstream, h2, policy)?;
        *request.uri_mut() = uri;
        Ok(())
    }
}

/// Whom the wait was for.
enum Late {
    Upstream,
    Client,
}

/// Waits for an answer for as long as is allowed after the last piece of the request went out.
async fn head_within<T>(
    limit: Duration,
    mut sent: Pin<&mut impl Future<Output = T>>,
    upload: Option<&UploadWatch>,
) -> Result<T, Late> {
    let mut timer = pin!(sleep(limit));
    loop {
        tokio::select! {
            biased;
            answer = sent.as_mut() => return Ok(answer),
            () = timer.as_mut() => {
                let Some(upload) = upload else { return Err(Late::Upstream) };
                let due = upload.last_progress() + limit;
                if due > Instant::now() {
                    timer.as_mut().reset(due.into());
                } else if upload.waits_for_client() {
                    return Err(Late::Client);
                } else {
                    return Err(Late::Upstream);
                }
            }
        }
    }
}

// === impl Spare ===

impl Spare {
    /// Cloning a head costs little beside sending it, and only what may be repeated is cloned.
    fn of(request: &Request<UploadBody>) -> Self {
        Self {
            method: request.method().clone(),
            uri: request.uri().clone(),
            headers: request.headers().clone(),
        }
    }

    fn into_request(self) -> Request<UploadBody> {
        let mut request = Request::new(UploadBody::empty());
        *request.method_mut() = self.method;
        *request.uri_mut() = self.uri;
        *request.headers_mut() = self.headers;
        request
    }
}
