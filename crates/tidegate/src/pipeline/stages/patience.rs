use crate::pipeline::counters::PipelineCounters;
use crate::store::StoreError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::sleep;

const FIRST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(1);

/// What a stage does when the store fails: it waits and tries again, for as long as that takes. What it holds keeps
/// its credits meanwhile, so the stages before it fill up, and then whoever sends is felt to wait.
#[derive(Debug)]
pub(crate) struct Patience {
    counters: Arc<PipelineCounters>,
    store_ok: Arc<AtomicBool>,
    wait: Duration,
}

// === impl Patience ===

impl Patience {
    pub(crate) fn new(counters: Arc<PipelineCounters>, store_ok: Arc<AtomicBool>) -> Self {
        Self { counters, store_ok, wait: FIRST }
    }

    /// It failed: tells so, and waits a while.
    pub(crate) async fn after(&mut self, error: &StoreError) {
        PipelineCounters::add(&self.counters.store_failures, 1);
        if self.store_ok.swap(false, Ordering::Relaxed) {
            match error.is_temporary() {
                true => {
                    tracing::warn!(%error, "the store fails: senders are held back until it works")
                }
                false => tracing::error!(%error, "the store fails, and won't work by waiting"),
            }
        }
        sleep(self.wait).await;
        self.wait = (self.wait * 2).min(LONGEST);
    }

    /// It worked.
    pub(crate) fn over(&mut self) {
        self.wait = FIRST;
        if !self.store_ok.swap(true, Ordering::Relaxed) {
            tracing::info!("the store works again");
        }
    }
}
