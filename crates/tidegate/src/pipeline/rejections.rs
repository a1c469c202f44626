use super::connection::Connection;
use super::counters::PipelineCounters;
use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Between two lines of the log: whoever sends garbage fast should not fill the disk with it.
const LOG_EVERY: Duration = Duration::from_secs(1);

/// Counts what is refused, by reason, and tells the log where it came from.
#[derive(Clone, Debug)]
pub(crate) struct Rejections {
    counters: Arc<PipelineCounters>,
    log: Arc<Mutex<Log>>,
}

#[derive(Debug, Default)]
struct Log {
    last: Option<Instant>,
    untold: u64,
}

// === impl Rejections ===

impl Rejections {
    pub(crate) fn new(counters: Arc<PipelineCounters>) -> Self {
        Self { counters, log: Arc::default() }
    }

    /// Something was refused as it should be.
    pub(crate) fn count(&self, connection: &Connection, reason: &'static str) {
        self.counters.reject(connection.protocol().name(), reason);
    }

    /// Something was refused because it is wrong.
    pub(crate) fn note(&self, connection: &Connection, reason: &'static str, error: &dyn Display) {
        self.count(connection, reason);
        let untold = {
            let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            if log.last.is_some_and(|last| now.duration_since(last) < LOG_EVERY) {
                log.untold += 1;
                return;
            }
            log.last = Some(now);
            std::mem::take(&mut log.untold)
        };
        let (peer, protocol) = (connection.peer(), connection.protocol().name());
        tracing::warn!(%peer, protocol, reason, %error, untold, "refused what a sender sent");
    }
}
