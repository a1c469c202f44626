use super::actor::Actor;
use super::attempt::{millis, now_ms};
use super::event::Event;
use super::link::Link;
use super::meters::{ExecutorGauge, ManagerGauges};
use crate::worker::CapacityReport;
use std::sync::Arc;
use std::time::Duration;
use tidegate::capacity::ExecutorId;
use tidegate::ledger::Ledger;
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
        }
        if now >= self.due.forget {
            self.due.forget = now + FORGET_EVERY;
            self.forget();
        }
    }

    /// What runs here need not be waited for: it is known from the first task on.
    pub fn meet_those_here(&mut self) {
        for at in 0..self.executors.len() {
            let Ok(id) = u32::try_from(at).map(ExecutorId) else { continue };
            if let Link::Local(executor) = &*self.executors[at].link {
                let report = Ok(Box::new(executor.capacity()));
                self.probed(id, report, self.dispatcher.changes(id));
            }
        }
        self.set_gauges();
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
