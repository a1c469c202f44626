use super::actor::Actor;
use super::event::Event;
use std::sync::Arc;
use std::time::Duration;
use tidegate::capacity::{ExecutorId, LeaseAnswer, Placement, Ticket};
use tidegate::ledger::{Acquired, Ledger, SlotLease, SlotRequest};
use tidegate::task::ExecutionKey;
use tidegate::tasks::TaskStore;
use tokio::sync::mpsc;

/// A lease this old is at its executor, or never will be: connecting, sending and being answered take less.
const SETTLED: Duration = Duration::from_secs(15);

// === impl Actor ===

impl<S: TaskStore, L: Ledger> Actor<S, L> {
    pub fn uses_ledger(&self) -> bool {
        self.terms.placement == Placement::Semaphore
    }

    pub fn lease(&mut self, ticket: Ticket, executors: &[ExecutorId]) {
        let Some(entry) = self.book.get(ticket) else { return };
        let named = executors.iter().filter_map(|id| self.executors.get(id.0 as usize));
        let request = SlotRequest {
            holder: entry.record.id.attempt(entry.record.state.attempt + 1),
            priority: entry.record.spec.priority,
            executors: named.map(|executor| executor.name.clone()).collect(),
            ttl: self.terms.lease,
        };
        let names: Vec<_> = self.executors.iter().map(|executor| executor.name.clone()).collect();
        let (ledger, events) = (Arc::clone(&self.ledger), self.events.clone());
        tokio::spawn(async move {
            let (answer, lease) = match ledger.acquire(&request).await {
                Ok(Acquired::Granted(lease)) => {
                    let at = names.iter().position(|name| *name == lease.executor);
                    let at = at.and_then(|at| u32::try_from(at).ok());
                    match at {
                        Some(at) => (LeaseAnswer::Granted(ExecutorId(at)), Some(lease)),
                        // An executor that this manager does not know; it was granted by an earlier life.
                        None => {
                            let _ = ledger.release(&lease).await;
                            (LeaseAnswer::Unavailable, None)
                        }
                    }
                }
                Ok(Acquired::Waiting { .. }) => (LeaseAnswer::Waiting, None),
                Err(error) => {
                    tracing::warn!(%error, "no slot can be had");
                    (LeaseAnswer::Unavailable, None)
                }
            };
            let _ = events.send(Event::Leased { ticket, answer, lease }).await;
        });
    }

    pub fn unlease(&mut self, ticket: Ticket) {
        let Some(entry) = self.book.get_mut(ticket) else { return };
        let lease = entry.lease.take();
        self.leased.remove(&ticket);
        let holder = entry.record.id.attempt(entry.record.state.attempt + 1);
        let ledger = Arc::clone(&self.ledger);
        tokio::spawn(async move {
            let undone = match &lease {
                Some(lease) => ledger.release(lease).await,
                None => ledger.withdraw(&holder).await,
            };
            if let Err(error) = undone {
                tracing::warn!(%error, "a slot was not given back; it returns with its time");
            }
        });
    }

    /// A slot is held for an attempt; where nobody needs it any more it goes back.
    pub fn regained(&mut self, ticket: Ticket, lease: SlotLease) {
        match self.book.get_mut(ticket) {
            Some(entry) => {
                entry.lease = Some(lease);
                self.leased.insert(ticket);
            }
            None => {
                let ledger = Arc::clone(&self.ledger);
                tokio::spawn(async move {
                    let _ = ledger.release(&lease).await;
                });
            }
        }
    }

    /// Gives back what an attempt still holds.
    pub fn release(&mut self, ticket: Ticket) {
        self.leased.remove(&ticket);
        if let Some(lease) = self.book.get_mut(ticket).and_then(|entry| entry.lease.take()) {
            let ledger = Arc::clone(&self.ledger);
            tokio::spawn(async move {
                let _ = ledger.release(&lease).await;
            });
        }
    }

    /// What an earlier life had sent holds its slot in the ledger again.
    pub fn regain(&self, ticket: Ticket, executor: &str) {
        if !self.uses_ledger() {
            return;
        }
        let Some(entry) = self.book.get(ticket) else { return };
        let request = SlotRequest {
            holder: entry.record.id.attempt(entry.record.state.attempt),
            priority: entry.record.spec.priority,
            executors: vec![executor.into()],
            ttl: self.terms.lease,
        };
        let (ledger, events) = (Arc::clone(&self.ledger), self.events.clone());
        tokio::spawn(async move { regain(&*ledger, &request, ticket, &events).await });
    }

    /// The newest fence of which every lease has arrived at its executor by now, if it ever will.
    fn settled_fence(&mut self, id: ExecutorId) -> Option<u64> {
        let now = self.now();
        let seen = self.fences.get_mut(&id)?;
        let mut settled = None;
        while let Some((at, fence)) = seen.front().copied() {
            if at + SETTLED > now {
                break;
            }
            settled = Some(fence);
            seen.pop_front();
        }
        settled
    }

    /// The ledger hears how many slots there are, and what of them the executor really runs.
    pub fn tell_ledger(&mut self, id: ExecutorId, slots: u32) {
        if !self.uses_ledger() {
            return;
        }
        let settled = self.settled_fence(id);
        let Some(executor) = self.executors.get(id.0 as usize) else { return };
        let said = executor.report.as_ref().and_then(|report| report.executions.clone());
        let mut running: Vec<ExecutionKey> =
            said.iter().flatten().filter_map(|text| text.parse().ok()).collect();
        // What is on its way there is not there yet, and is held all the same.
        let ours = self.leased.iter().filter_map(|ticket| self.book.get(*ticket)?.lease.as_ref());
        running.extend(ours.map(|lease| lease.holder.clone()));
        let asked_after = said.and(settled);
        let (ledger, name, events) =
            (Arc::clone(&self.ledger), executor.name.clone(), self.events.clone());
        tokio::spawn(async move {
            let told = async {
                // Every time: a ledger that was started anew has forgotten it.
                ledger.declare(&name, slots).await?;
                if let Some(asked_after) = asked_after {
                    ledger.reconcile(&name, &running, asked_after).await?;
                }
                ledger.latest_fence().await
            };
            if let Ok(fence) = told.await {
                let _ = events.send(Event::FenceSeen { executor: id, fence }).await;
            }
        });
    }

    /// Keeps the slots that are held, and the places in the ledger's line.
    pub fn renew(&mut self) {
        if !self.uses_ledger() {
            return;
        }
        let ttl = self.terms.lease;
        for ticket in self.leased.clone() {
            let Some(entry) = self.book.get(ticket) else { continue };
            let Some(lease) = entry.lease.clone() else { continue };
            let request = SlotRequest {
                holder: lease.holder.clone(),
                priority: entry.record.spec.priority,
                executors: vec![lease.executor.clone()],
                ttl,
            };
            let (ledger, events) = (Arc::clone(&self.ledger), self.events.clone());
            tokio::spawn(async move {
                if let Ok(false) = ledger.renew(&lease, ttl).await {
                    tracing::warn!(holder = %lease.holder, "a slot was lost in the ledger; asking for it again");
                    regain(&*ledger, &request, ticket, &events).await;
                }
            });
        }
        for order in self.dispatcher.ledger_changed(self.now()) {
            self.obey(order);
        }
    }

    pub fn watch_ledger(&self) {
        if !self.uses_ledger() {
            return;
        }
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

/// Asks for a slot that should be held already. Somebody else may have it now: then the executor has the last
/// word.
async fn regain<L: Ledger>(
    ledger: &L,
    request: &SlotRequest,
    ticket: Ticket,
    events: &mpsc::Sender<Event>,
) {
    match ledger.acquire(request).await {
        Ok(Acquired::Granted(lease)) => {
            let _ = events.send(Event::Regained { ticket, lease }).await;
        }
        Ok(Acquired::Waiting { .. }) => {
            let _ = ledger.withdraw(&request.holder).await;
        }
        Err(error) => tracing::warn!(%error, "a slot can't be asked for again"),
    }
}
