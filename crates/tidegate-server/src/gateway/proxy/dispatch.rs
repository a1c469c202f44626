use super::request::OutgoingHead;
use super::selection::Selection;
use super::{ProxyError, ThreadProxy};
use crate::config::Orca;
use crate::gateway::load::orca;
use crate::gateway::upstream::{Reservation, TriedUpstreams};
use crate::http::client::{
    ClientError, Connection, EndpointBody, HttpVersion, UploadBody, UploadWatch,
};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response, Uri};
use std::future::pending;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::Sleep;

/// The number of reused connections that may turn out to be closed before their upstream is taken for
/// broken.
const STALE_MAX: u32 = 1;

/// A time that no timeout exceeds.
const NEVER: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// A copy of the head of a request of HTTP/2 for a second attempt: only made when a retry is safe.
struct Spare {
    method: Method,
    uri: Uri,
    /// Not a map, which costs twice as much to clone, and is wanted again in few requests.
    fields: Vec<(HeaderName, HeaderValue)>,
}

/// A request that got no answer.
enum Unanswered {
    /// The request was not sent.
    Unsent(Box<Request<UploadBody>>),
    /// The request may have begun, and may be sent again all the same.
    Again(Box<Request<UploadBody>>, ProxyError),
    Failed(ProxyError),
}

/// A request that is sent to upstreams until one responds.
pub struct Dispatch<'a> {
    pub thread: &'a ThreadProxy,
    pub head: &'a OutgoingHead,
    pub selection: &'a Selection,
    pub upload: Option<Arc<UploadWatch>>,
    pub grpc: bool,
    /// The whole body, if the request may be repeated: its method is idempotent, or the client says so.
    pub replay: Option<Vec<Bytes>>,
}

// === impl Offer ===

impl Dispatch<'_> {
    /// Sends the request to an upstream and waits for the head of its answer.
    ///
    /// A request that certainly was not sent goes to another upstream when one fails. One that may have begun is
    /// repeated only if that is safe, and within the gateway's budget of retries.
    ///
    /// # Errors
    ///
    /// The last failure, when nobody is left to try.
    pub async fn send(
        &self,
        request: &mut Option<Request<UploadBody>>,
        first: Reservation,
    ) -> Result<(Response<EndpointBody>, Reservation), ProxyError> {
        let mut next = Some(first);
        let mut tried = TriedUpstreams::default();
        let mut last = ProxyError::NoUpstream;
        let mut stale = 0;
        while !tried.is_full() {
            let mut reservation = match next.take() {
                Some(reservation) => reservation,
                None => match Box::pin(self.selection.acquire(self.thread, &tried)).await {
                    Ok(reservation) => reservation,
                    Err(ProxyError::NoUpstream) => break,
                    Err(refused) => return Err(refused),
                },
            };
            let now = Instant::now();
            let connection = match self.reach(&mut reservation, &mut tried, now).await {
                Ok(connection) => connection,
                Err(error) => {
                    last = error;
                    continue;
                }
            };
            // A connection that was used before may just have been closed, which says nothing about its
            // upstream; but not for ever, or a peer that takes and drops would be asked so.
            let forgiven = connection.was_reused() && stale < STALE_MAX;
            if forgiven {
                stale += 1;
            } else {
                tried.insert(reservation.upstream().id());
            }
            let sent_at = if connection.was_reused() { now } else { Instant::now() };
            match self.attempt(request, &mut reservation, connection, sent_at).await {
                Ok(response) => return Ok((response, reservation)),
                Err(Unanswered::Unsent(unsent)) => *request = Some(*unsent),
                Err(Unanswered::Again(again, error)) => {
                    if !forgiven {
                        reservation.failed();
                        if !self.thread.may_retry() {
                            return Err(error);
                        }
                    }
                    reservation.upstream().count_repeat();
                    last = error;
                    *request = Some(*again);
                }
                Err(Unanswered::Failed(error)) => {
                    match &error {
                        ProxyError::ResponseTimeout { .. } => reservation.timed_out(),
                        error if !error.is_clients() => reservation.failed(),
                        _ => {}
                    }
                    return Err(error);
                }
            }
        }
        Err(last)
    }

    /// Takes a part of the upstream's share, and gets a connection. When that fails another may be tried.
    async fn reach(
        &self,
        reservation: &mut Reservation,
        tried: &mut TriedUpstreams,
        now: Instant,
    ) -> Result<Connection, ProxyError> {
        if let Err(rejection) = self.selection.take_share(self.thread, reservation) {
            tried.insert(reservation.upstream().id());
            return Err(rejection.into());
        }
        let upstream = reservation.upstream();
        upstream.count_sent();
        match self.thread.pool.checkout(upstream.endpoint(), self.version(), now).await {
            Ok(connection) => {
                if !connection.was_reused() {
                    upstream.note(None);
                }
                Ok(connection)
            }
            Err(source) => {
                reservation.failed();
                let upstream = reservation.upstream();
                upstream.note(Some(&source));
                tried.insert(upstream.id());
                Err(ProxyError::Connect { upstream: upstream.name().to_owned(), source })
            }
        }
    }

    async fn attempt(
        &self,
        request: &mut Option<Request<UploadBody>>,
        reservation: &mut Reservation,
        mut connection: Connection,
        sent_at: Instant,
    ) -> Result<Response<EndpointBody>, Unanswered> {
        let Some(mut outgoing) = request.take() else {
            return Err(Unanswered::Failed(ProxyError::NoUpstream));
        };
        self.address(&mut outgoing, reservation, connection.is_h2()).map_err(Unanswered::Failed)?;
        // HTTP/1.1 gives the head back when it fails.
        let spare = connection.is_h2() && self.replay.is_some();
        let spare = spare.then(|| Spare::of(&outgoing));
        let limit = self.thread.config.proxy.response_timeout;
        let mut timer =
            connection.take_timer(sent_at.checked_add(limit).unwrap_or(sent_at + NEVER));
        let answer = {
            let lines = self.head.lines(outgoing.headers());
            let sent = pin!(connection.send(outgoing, lines));
            let waits = Waits { upload: self.upload.as_deref(), sent_at, limit };
            waits.head(sent, timer.as_mut(), |now| reservation.sent(now)).await
        };
        let mut failure = match answer {
            Ok(Ok(mut response)) => {
                response.body_mut().keep_timer(timer);
                self.note_answer(reservation, &mut response, sent_at);
                return Ok(response);
            }
            Ok(Err(failure)) => failure,
            Err(Late::Upstream) => {
                let upstream = reservation.upstream().name().to_owned();
                let error = ProxyError::ResponseTimeout { upstream, after: limit };
                return Err(Unanswered::Failed(error));
            }
            Err(Late::Slow) => {
                let min = self.thread.config.listen.body_rate_min;
                return Err(Unanswered::Failed(ProxyError::UploadSlow { min }));
            }
            Err(Late::Client) => {
                return Err(Unanswered::Failed(ProxyError::UploadStalled { after: limit }));
            }
        };
        if let Some(unsent) = failure.take_unsent() {
            return Err(Unanswered::Unsent(unsent));
        }
        if self.upload.as_ref().is_some_and(|upload| upload.is_broken()) {
            return Err(Unanswered::Failed(ProxyError::UploadBroken));
        }
        let head = failure.take_head();
        let (upstream, source) = (reservation.upstream().name().to_owned(), failure.into_error());
        if matches!(source, ClientError::Informational) {
            let why = "it sent more than 16 informational responses";
            return Err(Unanswered::Failed(ProxyError::BadAnswer { upstream, why }));
        }
        let error = ProxyError::Reset { upstream, source };
        let again = self.replay.as_ref().and_then(|body| {
            let request = match head {
                Some(head) => Request::from_parts(*head, ()),
                None => spare?.into_request(),
            };
            Some(request.map(|()| self.copy_of(body)))
        });
        Err(match again {
            Some(again) => Unanswered::Again(Box::new(again), error),
            None => Unanswered::Failed(error),
        })
    }

    /// The body of a second attempt.
    fn copy_of(&self, body: &[Bytes]) -> UploadBody {
        match body.is_empty() && self.upload.is_none() {
            true => UploadBody::empty(),
            false => UploadBody::of_pieces(body.to_vec(), self.upload.clone()),
        }
    }

    /// Learns from the head of an answer. What it says of the load is for this gateway, not for the client.
    fn note_answer(
        &self,
        reservation: &mut Reservation,
        response: &mut Response<EndpointBody>,
        sent_at: Instant,
    ) {
        let read = self.thread.config.routing.orca != Orca::Off;
        let report = || if read { orca::parse(response.headers()) } else { None };
        reservation.answered(response.status(), sent_at, report);
        if self.head.hides_load() {
            response.headers_mut().remove(&orca::RESPONSE_HEADER);
        }
    }

    /// The version that the request needs. gRPC exists over HTTP/2 alone, upgrades over HTTP/1.1 alone.
    fn version(&self) -> HttpVersion {
        if self.head.wants_upgrade() {
            HttpVersion::Http1
        } else if self.grpc {
            HttpVersion::Http2
        } else {
            HttpVersion::Any
        }
    }

    fn address(
        &self,
        request: &mut Request<UploadBody>,
        reservation: &Reservation,
        h2: bool,
    ) -> Result<(), ProxyError> {
        let policy = self.thread.config.proxy.host;
        let endpoint = reservation.upstream().endpoint();
        self.head.address_uri(request.uri_mut(), endpoint, h2, policy)?;
        *request.version_mut() =
            self.head.address_headers(request.headers_mut(), endpoint, h2, policy)?;
        if let Some(name) = &self.thread.config.routing.rank_header {
            request.headers_mut().insert(name, HeaderValue::from(reservation.rank()));
        }
        Ok(())
    }
}

/// The side that did not send in time.
enum Late {
    Upstream,
    Client,
    /// The client, whose body drips.
    Slow,
}

/// The wait for the head of an answer.
struct Waits<'a> {
    upload: Option<&'a UploadWatch>,
    sent_at: Instant,
    limit: Duration,
}

// === impl Waits ===

impl Waits<'_> {
    /// Waits for an answer for as long as is allowed after the last piece of the request went out, and tells when
    /// that was.
    async fn head<T>(
        &self,
        mut sent: Pin<&mut impl Future<Output = T>>,
        mut timer: Pin<&mut Sleep>,
        mut on_sent: impl FnMut(Instant),
    ) -> Result<T, Late> {
        let Self { upload, sent_at, limit } = *self;
        let mut going_out = upload.is_some();
        if !going_out {
            on_sent(sent_at);
        }
        let gone_out = async {
            match upload {
                Some(upload) => upload.gone_out().await,
                None => pending().await,
            }
        };
        let mut gone_out = pin!(gone_out);
        loop {
            tokio::select! {
                biased;
                answer = sent.as_mut() => return Ok(answer),
                () = gone_out.as_mut(), if going_out => {
                    if upload.is_some_and(UploadWatch::is_too_slow) {
                        return Err(Late::Slow);
                    }
                    going_out = false;
                    on_sent(Instant::now());
                }
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
}

// === impl Spare ===

impl Spare {
    /// Cloning a head costs little beside sending it, and only what may be repeated is cloned.
    fn of(request: &Request<UploadBody>) -> Self {
        let headers = request.headers();
        let mut fields = Vec::with_capacity(headers.len());
        fields.extend(headers.iter().map(|(name, value)| (name.clone(), value.clone())));
        Self { method: request.method().clone(), uri: request.uri().clone(), fields }
    }

    fn into_request(self) -> Request<()> {
        let mut request = Request::new(());
        *request.method_mut() = self.method;
        *request.uri_mut() = self.uri;
        for (name, value) in self.fields {
            request.headers_mut().append(name, value);
        }
        request
    }
}
