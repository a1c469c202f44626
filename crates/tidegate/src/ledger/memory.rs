use super::changes::Changes;
use super::{Acquired, Ledger, LedgerError, SlotLease, SlotLedger, SlotRequest};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tidegate_core::task::ExecutionKey;
use tokio::time::Instant;

/// Nobody who waits sleeps for longer.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// The slots of executors in the memory of this process. Clones share them.
///
/// Fences rise over restarts of the process, as long as the clock of the machine does.
///
/// ```
/// use std::time::Duration;
/// use tidegate::MessagePriority::Normal;
/// use tidegate::ledger::{Acquired, Ledger, MemoryLedger, SlotRequest};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let ledger = MemoryLedger::new();
/// ledger.declare("http://127.0.0.1:8083", 1).await?;
/// let request = SlotRequest {
///     holder: "nightly@1".parse()?,
///     priority: Normal,
///     executors: vec!["http://127.0.0.1:8083".into()],
///     ttl: Duration::from_secs(30),
/// };
/// let lease = loop {
///     match ledger.acquire(&request).await? {
///         Acquired::Granted(lease) => break lease,
///         Acquired::Waiting { .. } => ledger.changed().await,
///     }
/// };
/// assert!(ledger.release(&lease).await?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct MemoryLedger {
    slots: Arc<Mutex<SlotLedger>>,
    started: Instant,
    changes: Changes,
}

// === impl MemoryLedger ===

impl MemoryLedger {
    /// No executor is known, nobody waits.
    #[must_use]
    pub fn new() -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        // An earlier life gave less than a million fences a second.
        let floor = u64::try_from(since.as_micros()).unwrap_or(0);
        let slots = Arc::new(Mutex::new(SlotLedger::new(floor)));
        Self { slots, started: Instant::now(), changes: Changes::new() }
    }

    /// One step, and word of it to all who wait if a slot came free.
    fn step<T>(&self, step: impl FnOnce(&mut SlotLedger, Duration) -> T) -> T {
        let mut slots = self.lock();
        // Read under the lock: of two steps the later one has the later time.
        let now = self.started.elapsed();
        let before = slots.changes();
        let done = step(&mut slots, now);
        let changed = slots.changes() != before;
        drop(slots);
        if changed {
            self.changes.announce();
        }
        done
    }

    fn lock(&self) -> MutexGuard<'_, SlotLedger> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time until a slot may become free by expiry.
    fn wait_max(&self) -> Duration {
        let next = self.lock().next_expiry();
        let now = self.started.elapsed();
        next.map_or(WAIT_MAX, |next| next.saturating_sub(now)).clamp(
            // Whoever is late to expire something must not spin.
            Duration::from_millis(1),
            WAIT_MAX,
        )
    }
}

impl Default for MemoryLedger {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryLedger").finish_non_exhaustive()
    }
}

impl Ledger for MemoryLedger {
    async fn declare(&self, executor: &str, slots: u32) -> Result<(), LedgerError> {
        Ok(self.step(|ledger, now| ledger.declare(executor, slots, now))?)
    }

    async fn acquire(&self, request: &SlotRequest) -> Result<Acquired, LedgerError> {
        Ok(self.step(|ledger, now| ledger.acquire(request, now))?)
    }

    async fn renew(&self, lease: &SlotLease, ttl: Duration) -> Result<bool, LedgerError> {
        Ok(self.step(|ledger, now| ledger.renew(lease, ttl, now)))
    }

    async fn release(&self, lease: &SlotLease) -> Result<bool, LedgerError> {
        Ok(self.step(|ledger, now| ledger.release(lease, now)))
    }

    async fn withdraw(&self, holder: &ExecutionKey) -> Result<bool, LedgerError> {
        Ok(self.step(|ledger, now| ledger.withdraw(holder, now)))
    }

    async fn reconcile(
        &self,
        executor: &str,
        running: &[ExecutionKey],
        asked_after: u64,
    ) -> Result<u64, LedgerError> {
        Ok(self.step(|ledger, now| ledger.reconcile(executor, running, asked_after, now)))
    }

    async fn latest_fence(&self) -> Result<u64, LedgerError> {
        Ok(self.lock().latest_fence())
    }

    async fn held(&self, executor: &str) -> Result<u32, LedgerError> {
        Ok(self.step(|ledger, now| ledger.held(executor, now)))
    }

    async fn changed(&self) {
        self.changes.wait(self.wait_max()).await;
        self.step(SlotLedger::expire);
    }
}
