use crate::pipeline::counters::PipelineCounters;
use crate::store::StoreError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::sleep;

const FIRST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(1);

/// What a stage does when the store fails: it waits and tries again, for as long as that takes. What it holds
/// keeps its credits meanwhile, so the stages before it fill up, and then whoever sends is felt to wait.
#[derive(Debug)]
pub(crate) struct Patience {
    counters: Arc<PipelineCounters>,
    /// Whether this stage could last use the store. Each has its own: a full disk can still be read.
    store_ok: Arc<AtomicBool>,
    /// What was told of a failure that lasts.
    told: Option<Told>,
    wait: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Temporary,
    Lasting,
}

// === impl Patience ===

impl Patience {
    pub(crate) fn new(counters: Arc<PipelineCounters>, store_ok: Arc<AtomicBool>) -> Self {
        Self { counters, store_ok, told: None, wait: FIRST }
    }

    /// It failed: tells so, and waits a while.
    pub(crate) async fn after(&mut self, error: &StoreError) {
        PipelineCounters::add(&self.counters.store_failures, 1);
        self.store_ok.store(false, Ordering::Relaxed);
        let kind = if error.is_temporary() { Told::Temporary } else { Told::Lasting };
        if self.told.replace(kind) != Some(kind) {
            match kind {
                Told::Temporary => {
                    tracing::warn!(%error, "the store fails: senders are held back until it works");
                }
                Told::Lasting => {
                    tracing::error!(%error, "the store fails, and won't work by waiting")
                }
            }
        }
        sleep(self.wait).await;
        self.wait = (self.wait * 2).min(LONGEST);
    }

    /// It worked.
    pub(crate) fn over(&mut self) {
        self.wait = FIRST;
        if self.told.take().is_some() {
            self.store_ok.store(true, Ordering::Relaxed);
            tracing::info!("the store works again");
        }
    }
}
