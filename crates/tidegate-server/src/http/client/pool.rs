use super::connect::Opened;
use super::informational::HeadWatch;
use super::{ConnectError, Connector, Endpoint, UploadBody};
use crate::config::Scheme;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::time::{Sleep, sleep_until};

/// One thread's connections to a list of endpoints. Threads share none, so that a connection's tasks and the
/// requests on it never wake another core.
pub struct Pool {
    connector: Connector,
    idle_max: usize,
    idle_timeout: Duration,
    shelves: Vec<Mutex<Shelf>>,
}

/// The connections to one endpoint that can take a request now.
#[derive(Default)]
struct Shelf {
    /// Idle HTTP/1.1 connections, the last used on top.
    idle: Vec<Idle>,
    /// The HTTP/2 connection, shared by all its requests.
    shared: Option<Shared>,
}

/// An HTTP/2 connection and the heads that it brings.
#[derive(Clone)]
struct Shared {
    sender: http2::SendRequest<UploadBody>,
    heads: Arc<HeadWatch>,
}

struct Idle {
    sender: http1::SendRequest<UploadBody>,
    heads: Arc<HeadWatch>,
    timer: Option<Pin<Box<Sleep>>>,
    since: Instant,
}

/// A connection taken for one request.
pub struct Connection {
    kind: Kind,
    reused: bool,
    timer: Option<Pin<Box<Sleep>>>,
}

/// The version of HTTP that a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpVersion {
    /// The one that the endpoint's scheme says.
    Any,
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

enum Kind {
    H1(http1::SendRequest<UploadBody>, Arc<HeadWatch>),
    H2(Shared),
}

// === impl Pool ===

impl Pool {
    /// An empty pool for this many endpoints.
    #[must_use]
    pub fn new(
        endpoints: usize,
        connector: Connector,
        idle_max: usize,
        idle_timeout: Duration,
    ) -> Self {
        let shelves = (0..endpoints).map(|_| Mutex::default()).collect();
        Self { connector, idle_max, idle_timeout, shelves }
    }

    /// A connection that can take a request: an idle one, or a new one.
    ///
    /// # Errors
    ///
    /// When a new one is needed and can't be opened. Nothing was sent.
    ///
    /// # Cancel safety
    ///
    /// A connection that was being opened is closed again; an idle one that was taken is closed.
    pub async fn checkout(
        &self,
        endpoint: &Endpoint,
        version: HttpVersion,
        now: Instant,
    ) -> Result<Connection, ConnectError> {
        let wants_h2 = match (endpoint.scheme, version) {
            (Scheme::H2c, _) => true,
            (Scheme::Http, version) => version == HttpVersion::Http2,
            (Scheme::Https, HttpVersion::Http1) => false,
            (Scheme::Https, _) => self.shelf(endpoint).shared.is_some(),
        };
        if wants_h2 {
            if let Some(shared) = self.shared(endpoint) {
                return Ok(Connection { kind: Kind::H2(shared), reused: true, timer: None });
            }
        } else {
            while let Some(Idle { mut sender, heads, timer, .. }) = self.pop_idle(endpoint, now) {
                // A connection is put back when its answer has been read, which may be a moment before its
                // task has noticed; one that was closed meanwhile says so here.
                if sender.ready().await.is_ok() {
                    let kind = Kind::H1(sender, heads);
                    return Ok(Connection { kind, reused: true, timer });
                }
            }
        }
        let opened = self.connector.open(endpoint, version).await?;
        let kind = match opened {
            Opened::H1(sender, heads) => Kind::H1(sender, heads),
            Opened::H2(sender, heads) => {
                let shared = Shared { sender, heads };
                self.shelf(endpoint).shared = Some(shared.clone());
                Kind::H2(shared)
            }
        };
        Ok(Connection { kind, reused: false, timer: None })
    }

    /// Takes back a connection whose exchange is over now, for the next request.
    pub fn put_back(&self, endpoint: &Endpoint, connection: Connection, now: Instant) {
        let Connection { kind, timer, .. } = connection;
        if let Kind::H1(sender, heads) = kind {
            let mut shelf = self.shelf(endpoint);
            if shelf.idle.len() < self.idle_max && !sender.is_closed() {
                shelf.idle.push(Idle { sender, heads, timer, since: now });
            }
        }
    }

    /// Closes what has been idle for too long.
    pub fn sweep(&self) {
        let Some(oldest) = Instant::now().checked_sub(self.idle_timeout) else { return };
        for shelf in &self.shelves {
            lock(shelf).idle.retain(|idle| idle.since > oldest && !idle.sender.is_closed());
        }
    }

    fn pop_idle(&self, endpoint: &Endpoint, now: Instant) -> Option<Idle> {
        let mut shelf = self.shelf(endpoint);
        let top = shelf.idle.pop()?;
        if now.saturating_duration_since(top.since) < self.idle_timeout {
            return Some(top);
        }
        // The last used is too old, so all below it are.
        shelf.idle.clear();
        None
    }

    fn shared(&self, endpoint: &Endpoint) -> Option<Shared> {
        let mut shelf = self.shelf(endpoint);
        if shelf.shared.as_ref().is_some_and(|shared| shared.sender.is_closed()) {
            shelf.shared = None;
        }
        shelf.shared.clone()
    }

    fn shelf(&self, endpoint: &Endpoint) -> MutexGuard<'_, Shelf> {
        lock(&self.shelves[endpoint.index])
    }
}

/// A panic while a shelf is held leaves it whole: every change to it is one push or pop.
fn lock(shelf: &Mutex<Shelf>) -> MutexGuard<'_, Shelf> {
    shelf.lock().unwrap_or_else(PoisonError::into_inner)
}

// === impl Connection ===

impl Connection {
    /// Returns true if the connection was used before: the peer may be closing it at this very moment.
    #[must_use]
    pub fn was_reused(&self) -> bool {
        self.reused
    }

    /// Returns true if the connection speaks HTTP/2.
    #[must_use]
    pub fn is_h2(&self) -> bool {
        matches!(self.kind, Kind::H2(_))
    }

    /// Returns true if the connection failed because its server sent too many informational responses.
    #[must_use]
    pub fn had_too_many_informational(&self) -> bool {
        match &self.kind {
            Kind::H1(_, heads) => heads.is_exceeded(),
            Kind::H2(shared) => shared.heads.is_exceeded(),
        }
    }

    /// Takes the connection's timer, set to this moment. One that was set before is only moved: that is cheaper
    /// than a new one with each request.
    pub fn take_timer(&mut self, due: Instant) -> Pin<Box<Sleep>> {
        match self.timer.take() {
            Some(mut timer) => {
                timer.as_mut().reset(due.into());
                timer
            }
            None => Box::pin(sleep_until(due.into())),
        }
    }

    /// Gives a timer back, for the next request on the connection.
    pub fn keep_timer(&mut self, timer: Pin<Box<Sleep>>) {
        self.timer = Some(timer);
    }

    /// Sends a request and waits for the head of its answer.
    ///
    /// # Errors
    ///
    /// The failure, with the request when it was certainly not sent.
    ///
    /// # Cancel safety
    ///
    /// A request that is given up is cancelled: HTTP/1.1 closes the connection, HTTP/2 resets the stream.
    pub async fn send(
        &mut self,
        request: Request<UploadBody>,
    ) -> Result<Response<Incoming>, TrySendError<Request<UploadBody>>> {
        match &mut self.kind {
            Kind::H1(sender, heads) => {
                heads.arm();
                sender.try_send_request(request).await
            }
            Kind::H2(shared) => shared.sender.try_send_request(request).await,
        }
    }
}
