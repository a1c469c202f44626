use crate::tasks::manager::event::Event;
use std::sync::Arc;
use tidegate::capacity::{ExecutorId, Ticket};
use tidegate::ledger::{Acquired, Ledger, SlotLease, SlotRequest};
use tidegate::task::ExecutionKey;
use tokio::sync::mpsc;

/// Background calls to the slot ledger.
pub struct LedgerCalls<L> {
    ledger: Arc<L>,
    events: mpsc::Sender<Event>,
}

// === impl LedgerCalls ===

impl<L: Ledger> LedgerCalls<L> {
    /// Calls that report to `events`.
    pub fn new(ledger: Arc<L>, events: mpsc::Sender<Event>) -> Self {
        Self { ledger, events }
    }

    /// Requests a slot.
    pub fn acquire(&self, ticket: Ticket, request: SlotRequest) {
        let (ledger, events) = (Arc::clone(&self.ledger), self.events.clone());
        tokio::spawn(async move {
            let answer = match ledger.acquire(&request).await {
                Ok(acquired) => Some(acquired),
                Err(error) => {
                    tracing::warn!(%error, "slot ledger: can't acquire a slot");
                    None
                }
            };
            let _ = events.send(Event::LeaseAnswered { ticket, answer }).await;
        });
    }

    /// Releases a lease, or withdraws the request of `holder` if it has none.
    pub fn give_back(&self, lease: Option<SlotLease>, holder: ExecutionKey) {
        let ledger = Arc::clone(&self.ledger);
        tokio::spawn(async move {
            let result = match &lease {
                Some(lease) => ledger.release(lease).await,
                None => ledger.withdraw(&holder).await,
            };
            if let Err(error) = result {
                tracing::warn!(%error, "slot ledger: can't release a slot; its lease will expire");
            }
        });
    }

    /// Releases a lease.
    pub fn release(&self, lease: SlotLease) {
        let ledger = Arc::clone(&self.ledger);
        tokio::spawn(async move {
            let _ = ledger.release(&lease).await;
        });
    }

    /// Requests a slot that an attempt already occupies.
    pub fn regain(&self, ticket: Ticket, request: SlotRequest) {
        let (ledger, events) = (Arc::clone(&self.ledger), self.events.clone());
        tokio::spawn(async move { regain(&*ledger, &request, ticket, &events).await });
    }

    /// Renews a lease; if it is lost, requests its slot again.
    pub fn renew(&self, ticket: Ticket, lease: SlotLease, request: SlotRequest) {
        let (ledger, events) = (Arc::clone(&self.ledger), self.events.clone());
        tokio::spawn(async move {
            if let Ok(false) = ledger.renew(&lease, request.ttl).await {
                tracing::warn!(holder = %lease.holder, "slot ledger: lease lost; requesting it again");
                regain(&*ledger, &request, ticket, &events).await;
            }
        });
    }

    /// Declares an executor's slots, and reconciles the leases up to `settled` with what the executor runs.
    pub fn declare(
        &self,
        executor: ExecutorId,
        name: Box<str>,
        slots: u32,
        running: Vec<ExecutionKey>,
        settled: Option<u64>,
    ) {
        let (ledger, events) = (Arc::clone(&self.ledger), self.events.clone());
        tokio::spawn(async move {
            let declared = async {
                // Every time: a ledger that was restarted has forgotten the slots.
                ledger.declare(&name, slots).await?;
                if let Some(fence) = settled {
                    ledger.reconcile(&name, &running, fence).await?;
                }
                ledger.latest_fence().await
            };
            if let Ok(fence) = declared.await {
                let _ = events.send(Event::FenceSeen { executor, fence }).await;
            }
        });
    }

    /// Reports every change of the ledger, until the manager ends.
    pub fn watch(&self) {
        let (ledger, events) = (Arc::clone(&self.ledger), self.events.clone());
        tokio::spawn(async move {
            loop {
                ledger.changed().await;
                if events.send(Event::LedgerChanged).await.is_err() {
                    return;
                }
            }
        });
    }
}

/// Requests a slot that an attempt already occupies. If another attempt has it now, the executor decides.
async fn regain<L: Ledger>(
    ledger: &L,
    request: &SlotRequest,
    ticket: Ticket,
    events: &mpsc::Sender<Event>,
) {
    match ledger.acquire(request).await {
        Ok(Acquired::Granted(lease)) => {
            let _ = events.send(Event::LeaseRegained { ticket, lease }).await;
        }
        Ok(Acquired::Waiting { .. }) => {
            let _ = ledger.withdraw(&request.holder).await;
        }
        Err(error) => tracing::warn!(%error, "slot ledger: can't regain a slot"),
    }
}
