use super::connect::Opened;
use super::connection::{Kind, Shared};
use super::http1::Http1;
use super::{ConnectError, Connection, Connector, Endpoint};
use crate::config::Scheme;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// One thread's connections to a list of endpoints. Threads share none, so that a connection and the requests on
/// it never wake another core.
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

struct Idle {
    http1: Box<Http1>,
    since: Instant,
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
                return Ok(Connection { kind: Kind::Http2(shared), reused: true });
            }
        } else {
            while let Some(mut http1) = self.pop_idle(endpoint, now) {
                if poll_fn(|cx| Poll::Ready(http1.is_open(cx))).await {
                    return Ok(Connection::used(http1));
                }
            }
        }
        // Few requests open a connection, and all would carry the room that it takes.
        let kind = match Box::pin(self.connector.open(endpoint, version)).await? {
            Opened::Http1(http1) => Kind::Http1(http1),
            Opened::Http2(shared) => {
                self.shelf(endpoint).shared = Some(shared.clone());
                Kind::Http2(shared)
            }
        };
        Ok(Connection { kind, reused: false })
    }

    /// Takes back a connection whose exchange is over now, for the next request.
    pub fn put_back(&self, endpoint: &Endpoint, connection: Connection, now: Instant) {
        if let Kind::Http1(http1) = connection.kind {
            let mut shelf = self.shelf(endpoint);
            if shelf.idle.len() < self.idle_max {
                shelf.idle.push(Idle { http1, since: now });
            }
        }
    }

    /// Closes what has been idle for too long, and what its endpoint has closed.
    pub fn sweep(&self) {
        let Some(oldest) = Instant::now().checked_sub(self.idle_timeout) else { return };
        let mut cx = Context::from_waker(Waker::noop());
        for shelf in &self.shelves {
            lock(shelf).idle.retain_mut(|idle| idle.since > oldest && idle.http1.is_open(&mut cx));
        }
    }

    fn pop_idle(&self, endpoint: &Endpoint, now: Instant) -> Option<Box<Http1>> {
        let mut shelf = self.shelf(endpoint);
        let top = shelf.idle.pop()?;
        if now.saturating_duration_since(top.since) < self.idle_timeout {
            return Some(top.http1);
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
