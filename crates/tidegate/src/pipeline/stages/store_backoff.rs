use crate::pipeline::counters::PipelineCounters;
use crate::store::StoreError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::sleep;

const FIRST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(1);

/// Backoff of a stage while the store fails: the stage waits and retries until the store works. Its messages keep
/// their credits, so the stages before it fill up, and backpressure reaches the sender.
#[derive(Debug)]
pub(crate) struct StoreBackoff {
    counters: Arc<PipelineCounters>,
    /// True if this stage's last use of the store succeeded. Each stage has its own: a full disk can still be
    /// read.
    store_ok: Arc<AtomicBool>,
    /// The logged failure, while it lasts.
    logged: Option<LoggedFailure>,
    wait: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoggedFailure {
    Temporary,
    Lasting,
}

// === impl StoreBackoff ===

impl StoreBackoff {
    pub(crate) fn new(counters: Arc<PipelineCounters>, store_ok: Arc<AtomicBool>) -> Self {
        Self { counters, store_ok, logged: None, wait: FIRST }
    }

    /// Logs a failure and waits.
    pub(crate) async fn after(&mut self, error: &StoreError) {
        PipelineCounters::add(&self.counters.store_failures, 1);
        self.store_ok.store(false, Ordering::Relaxed);
        let kind =
            if error.is_temporary() { LoggedFailure::Temporary } else { LoggedFailure::Lasting };
        if self.logged.replace(kind) != Some(kind) {
            match kind {
                LoggedFailure::Temporary => {
                    tracing::warn!(%error, "the store fails: senders are held back until it works");
                }
                LoggedFailure::Lasting => {
                    tracing::error!(%error, "the store fails, and won't work by waiting")
                }
            }
        }
        sleep(self.wait).await;
        self.wait = (self.wait * 2).min(LONGEST);
    }

    /// Resets the backoff after a success.
    pub(crate) fn over(&mut self) {
        self.wait = FIRST;
        if self.logged.take().is_some() {
            self.store_ok.store(true, Ordering::Relaxed);
            tracing::info!("the store works again");
        }
    }
}
