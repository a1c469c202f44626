use super::telemetry::IoThreads;
use crate::http::port::{Connections, Listed, OpenConnection, Stage};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::time::{sleep, sleep_until};

/// The longest that a connection of the reserve may be without a request. A health check sends its request with
/// the connection, and whoever says nothing must not hold what is reserved for it.
const SILENCE_MAX: Duration = Duration::from_secs(1);

/// Connections beyond `listen.connections_max`, for health checks and other Critical requests.
#[derive(Debug)]
pub struct Reserve {
    open: Arc<Connections>,
    threads: Arc<IoThreads>,
    connections_max: usize,
    size: usize,
}

/// A connection of the reserve. Becomes an ordinary one when there is room for it.
#[derive(Debug)]
pub struct ReservedConnection {
    connection: Arc<OpenConnection>,
    /// Its entry in the reserve, until it is an ordinary connection.
    listed: Mutex<Option<Listed>>,
    threads: Arc<IoThreads>,
    connections_max: usize,
}

/// A Critical request that is being answered on a connection of the reserve.
pub struct ReservedAnswer<'a>(&'a OpenConnection);

// === impl Reserve ===

impl Reserve {
    pub fn new(threads: Arc<IoThreads>, connections_max: usize, size: usize) -> Self {
        Self { open: Arc::default(), threads, connections_max, size }
    }

    /// Takes a connection beyond the limit. If the reserve is full, the one that has been without a request for
    /// longest makes room; while all are being answered, a quarter more are taken. `None` beyond that.
    pub fn take(&self) -> Option<ReservedConnection> {
        if self.open.count() >= self.size + self.size.div_ceil(4) {
            return None;
        }
        let listed = self.open.list(self.size, Instant::now());
        Some(self.connection(listed, self.connections_max))
    }

    /// Takes a connection that has one of the last descriptors of the process: for Critical requests alone, since
    /// there is none for a connection to an upstream.
    pub fn take_last(&self, listed: Listed) -> ReservedConnection {
        self.connection(listed, 0)
    }

    fn connection(&self, listed: Listed, connections_max: usize) -> ReservedConnection {
        ReservedConnection {
            connection: Arc::clone(listed.connection()),
            listed: Mutex::new(Some(listed)),
            threads: Arc::clone(&self.threads),
            connections_max,
        }
    }
}

// === impl ReservedConnection ===

impl ReservedConnection {
    /// Returns true if a request on the connection is served: it is Critical, or there is room for the connection
    /// among the ordinary ones now. Counts the connection as refused otherwise.
    pub fn admits(&self, critical: bool) -> bool {
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        if listed.is_none() || critical {
            return true;
        }
        let has_room = self.threads.connections().sum::<u64>() <= self.connections_max as u64;
        if has_room {
            self.connection.reach(Stage::Answering, Instant::now());
            *listed = None;
        } else {
            self.threads.refuse_connection();
        }
        has_room
    }

    /// Begins to answer a Critical request: until it is answered, the connection makes room for no other.
    pub fn answer(&self) -> ReservedAnswer<'_> {
        self.connection.reach(Stage::Answering, Instant::now());
        ReservedAnswer(&self.connection)
    }

    /// Waits until the connection has to end: another needs its room, or it was without a request for 1 s.
    pub async fn ended(&self) {
        tokio::select! {
            () = self.connection.evicted() => {}
            () = self.silent() => {}
        }
    }

    async fn silent(&self) {
        loop {
            match self.connection.idle_since().map(|since| since + SILENCE_MAX) {
                Some(due) if due <= Instant::now() => return,
                Some(due) => sleep_until(due.into()).await,
                None => sleep(SILENCE_MAX).await,
            }
        }
    }
}

// === impl ReservedAnswer ===

impl Drop for ReservedAnswer<'_> {
    fn drop(&mut self) {
        self.0.reach(Stage::Waiting, Instant::now());
    }
}
