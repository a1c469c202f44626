use super::actor::Actor;
use super::attempt::{millis, now_ms};
use super::event::Event;
use super::meters::{ExecutorGauge, ManagerGauges};
use crate::worker::CapacityReport;
use std::sync::Arc;
use std::time::Duration;
use tidegate::capacity::{ExecutorId, Placement};
use tidegate::ledger::Ledger;
use tidegate::task::ExecutionKey;
use tidegate::tasks::TaskStore;
use tokio::time::Instant;

/// How often tasks are forgotten that are over for long enough.
const FORGET_EVERY: Duration = Duration::from_secs(60);
/// At most so many at once.
const FORGET_AT_ONCE: usize = 1_000;

// === impl Actor ===

impl<S: TaskStore, L: Ledger> Actor<S, L> {
    /// What is due by the clock.
    pub fn keep_house(&mut self) {
        let now = Instant::now();
        self.enqueue_due();
        if now >= self.due.probe {
            self.due.probe = now + self.terms.probe_every;
            self.probe();
            self.set_gauges();
        }
        if now >= self.due.renew {
            self.due.renew = now + self.terms.lease / 3;
            self.renew();
        }
        if now >= self.due.beat {
            self.due.beat = now + self.terms.lease / 3;
            self.adopt();
            self.look_for_ours();
        }
        if now >= self.due.forget {
            self.due.forget = now + FORGET_EVERY;
            self.forget();
        }
    }

    pub fn uses_ledger(&self) -> bool {
        self.terms.placement == Placement::Semaphore
    }

    /// Asks every executor how full it is, unless it still owes an answer.
    fn probe(&mut self) {
        for (at, executor) in self.executors.iter_mut().enumerate() {
            let Ok(id) = u32::try_from(at).map(ExecutorId) else { continue };
            if std::mem::replace(&mut executor.asked, true) {
                continue;
            }
            let (link, events) = (Arc::clone(&executor.link), self.events.clone());
            let changes = self.dispatcher.changes(id);
            tokio::spawn(async move {
                let report = link.capacity().await.map(Box::new);
                let _ = events.send(Event::Probed { executor: id, report, changes }).await;
            });
        }
    }

    pub fn probed(
        &mut self,
        id: ExecutorId,
        report: Result<Box<CapacityReport>, String>,
        changes: u64,
    ) {
        let Some(executor) = self.executors.get_mut(id.0 as usize) else { return };
        executor.asked = false;
        let was_up = executor.up;
        match report {
            Ok(report) => {
                let serves = self.runtimes.serves(&report);
                let max = if report.draining { 0 } else { report.max_concurrent };
                executor.up = true;
                self.dispatcher.executor_up(id, max, serves);
                self.dispatcher.reported(id, report.running + report.reserved, changes);
                if !was_up {
                    tracing::info!(executor = %executor.name, slots = max, "an executor is there");
                }
                executor.report = Some(*report);
                self.tell_ledger(id, max);
            }
            Err(error) => {
                executor.up = false;
                self.dispatcher.executor_down(id);
                if was_up || executor.report.is_none() {
                    tracing::warn!(executor = %executor.name, error, "an executor does not answer");
                }
            }
        }
    }

    /// The ledger hears how many slots there are, and what of them the executor really runs.
    fn tell_ledger(&mut self, id: ExecutorId, slots: u32) {
        if !self.uses_ledger() {
            return;
        }
        let Some(executor) = self.executors.get_mut(id.0 as usize) else { return };
        let said = executor.report.as_ref().and_then(|report| report.executions.clone());
        let mut running: Vec<ExecutionKey> =
            said.iter().flatten().filter_map(|text| text.parse().ok()).collect();
        // What is on its way there is not there yet, and is held all the same.
        let ours = self.book.iter().filter_map(|(_, entry)| entry.lease.as_ref());
        running.extend(ours.map(|lease| lease.holder.clone()));
        let asked_after = said.and_then(|_| self.fences.get(&id).copied());
        let (ledger, name, events) =
            (Arc::clone(&self.ledger), executor.name.clone(), self.events.clone());
        tokio::spawn(async move {
            let told = async {
                // Each time: a declaration ends by itself, and a ledger may have lost its memory.
                ledger.declare(&name, slots).await?;
                // Those of the look before: younger ones may be on their way from another manager.
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
    fn renew(&mut self) {
        if !self.uses_ledger() {
            return;
        }
        let ttl = self.terms.lease;
        for (_, entry) in self.book.iter() {
            let Some(lease) = entry.lease.clone() else { continue };
            let ledger = Arc::clone(&self.ledger);
            tokio::spawn(async move {
                if let Ok(false) = ledger.renew(&lease, ttl).await {
                    tracing::warn!(holder = %lease.holder, "a slot was not ours any more");
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

    fn forget(&self) {
        let (store, retention) = (Arc::clone(&self.store), millis(self.terms.retention));
        tokio::spawn(async move {
            let before_ms = now_ms().saturating_sub(retention);
            loop {
                match store.forget(before_ms, FORGET_AT_ONCE).await {
                    Ok(count) if count >= FORGET_AT_ONCE as u64 => {}
                    Ok(_) => return,
                    Err(error) => return tracing::warn!(%error, "old tasks can't be forgotten"),
                }
            }
        });
    }

    fn set_gauges(&self) {
        let mut gauges = ManagerGauges {
            bytes: self.book.bytes() as u64,
            held: self.estimate.held(),
            ..ManagerGauges::default()
        };
        let mut oldest_ms = u64::MAX;
        for (_, entry) in self.book.iter() {
            match entry.record.state.started_ms {
                Some(_) => gauges.running += 1,
                None => {
                    gauges.waiting[entry.record.spec.priority as usize] += 1;
                    oldest_ms = oldest_ms.min(entry.record.state.queued_ms);
                }
            }
        }
        if oldest_ms != u64::MAX {
            gauges.oldest_queued = Duration::from_millis(now_ms().saturating_sub(oldest_ms));
        }
        let executors = self.executors.iter().map(|executor| ExecutorGauge {
            name: executor.name.to_string(),
            url: executor.url.clone(),
            up: executor.up,
            report: executor.report.clone(),
        });
        gauges.executors = executors.collect();
        self.meters.set_gauges(gauges);
    }
}
