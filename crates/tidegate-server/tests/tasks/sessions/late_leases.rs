//! Answers of a slot ledger that arrive when their worker has gone.

use super::bed::{Bed, BedSettings, until};
use super::peer_worker::PeerWorker;
use crate::folder::TempFolder;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tidegate::capacity::Placement;
use tidegate::ledger::{Acquired, Ledger, LedgerError, MemoryLedger, SlotLease, SlotRequest};
use tidegate::task::ExecutionKey;
use tidegate_server::tasks::manager::ManagerSettings;
use tokio::sync::watch;

/// A slot ledger whose answers to requests of slots are on their way until they may arrive.
struct SlowLedger {
    ledger: MemoryLedger,
    asked: AtomicU64,
    answers: watch::Sender<bool>,
}

// === impl SlowLedger ===

impl Ledger for SlowLedger {
    async fn declare(&self, executor: &str, slots: u32) -> Result<(), LedgerError> {
        self.ledger.declare(executor, slots).await
    }

    async fn acquire(&self, request: &SlotRequest) -> Result<Acquired, LedgerError> {
        let acquired = self.ledger.acquire(request).await;
        self.asked.fetch_add(1, Ordering::SeqCst);
        let _ = self.answers.subscribe().wait_for(|answers| *answers).await;
        acquired
    }

    async fn renew(&self, lease: &SlotLease, ttl: Duration) -> Result<bool, LedgerError> {
        self.ledger.renew(lease, ttl).await
    }

    async fn release(&self, lease: &SlotLease) -> Result<bool, LedgerError> {
        self.ledger.release(lease).await
    }

    async fn withdraw(&self, holder: &ExecutionKey) -> Result<bool, LedgerError> {
        self.ledger.withdraw(holder).await
    }

    async fn reconcile(
        &self,
        executor: &str,
        running: &[ExecutionKey],
        asked_after: u64,
    ) -> Result<u64, LedgerError> {
        self.ledger.reconcile(executor, running, asked_after).await
    }

    async fn latest_fence(&self) -> Result<u64, LedgerError> {
        self.ledger.latest_fence().await
    }

    async fn held(&self, executor: &str) -> Result<u32, LedgerError> {
        self.ledger.held(executor).await
    }

    async fn changed(&self) {
        self.ledger.changed().await;
    }
}

/// The new worker has the id that the gone one had when the slot was requested: its slot is another's.
#[test]
fn a_slot_of_a_worker_that_has_gone_is_not_used_at_the_one_that_has_its_id() {
    let folder = TempFolder::new("late-lease");
    let ledger = Arc::new(SlowLedger {
        ledger: MemoryLedger::new(),
        asked: AtomicU64::new(0),
        answers: watch::Sender::new(false),
    });
    let placement = Placement::Semaphore;
    let settings = ManagerSettings { placement, ..ManagerSettings::default() };
    let bed = Bed::start_with(&folder, BedSettings::default(), settings, Arc::clone(&ledger));
    bed.run(async {
        let gone = PeerWorker::join(bed.address, "gone", 1, 1).await;
        bed.until_up("gone").await;
        let id = bed.submit("a", "x").await;
        until(|| ledger.asked.load(Ordering::SeqCst) == 1).await;
        drop(gone);
        while bed.handle.executors().await.unwrap().executors.iter().any(|executor| executor.up) {}
        let mut new = PeerWorker::join(bed.address, "new", 1, 1).await;
        bed.until_up("new").await;
        ledger.answers.send_replace(true);
        assert_eq!(new.accept().await, id.as_str());
        assert_eq!(ledger.held("new").await.unwrap(), 1);
        assert_eq!(ledger.held("gone").await.unwrap(), 0);
    });
}
