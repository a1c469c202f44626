use super::actor::Actor;
use crate::tasks::execution::{CapacityReport, ReserveBody};
use crate::tasks::manager::attempt::{Attempt, AttemptStart};
use std::sync::Arc;
use tidegate::capacity::{ExecutorId, Order, Ticket};
use tidegate::ledger::Ledger;
use tidegate::tasks::{TaskRecord, TaskStore};

// === impl Actor ===

impl<S: TaskStore, L: Ledger> Actor<S, L> {
    /// Sends queued tasks to executors with free slots.
    pub(super) fn dispatch(&mut self) {
        if self.draining {
            return;
        }
        if self.shared.is_some() {
            self.claim();
        } else {
            let orders = self.queue.orders(&self.rng);
            self.obey_all(orders);
        }
    }

    pub(super) fn obey_all(&mut self, orders: impl IntoIterator<Item = Order>) {
        orders.into_iter().for_each(|order| self.obey(order));
    }

    /// Carries out an order of the queue.
    pub(super) fn obey(&mut self, order: Order) {
        match order {
            Order::Execute { ticket, executor } => {
                if let Some(attempt) = self.begin_attempt(ticket, executor) {
                    self.meters.sent();
                    tokio::spawn(attempt.run());
                }
            }
            Order::Reserve { ticket, executor } => self.reserve(ticket, executor),
            Order::Lease { ticket, executors } => self.lease(ticket, &executors),
            Order::Unlease { ticket } => self.unlease(ticket),
        }
    }

    /// Begins an attempt, which owns the task's state from now on.
    pub(super) fn begin_attempt(
        &mut self,
        ticket: Ticket,
        executor: ExecutorId,
    ) -> Option<Attempt<S>> {
        let (executor, link) = self.executors.link(executor)?;
        let entry = self.tasks.get_mut(ticket)?;
        let (cancel, reservation) = entry.begin_attempt(executor.clone());
        let record = entry.record().clone();
        let start = AttemptStart { ticket, record, executor, link, cancel, reservation };
        let (store, events) = (Arc::clone(self.store.store()), self.events.clone());
        Some(Attempt::new(start, store, events, &self.settings))
    }

    /// Resumes an attempt that was sent to an executor before.
    pub(super) fn resume(&mut self, ticket: Ticket, executor: ExecutorId, record: &TaskRecord) {
        self.queue.resume(ticket, executor, record);
        if let Some(attempt) = self.begin_attempt(ticket, executor) {
            self.regain_lease(ticket, attempt.executor());
            tokio::spawn(attempt.resume());
        }
    }

    fn reserve(&mut self, ticket: Ticket, executor: ExecutorId) {
        let Some(record) = self.tasks.record(ticket) else { return };
        let Some((_, link)) = self.executors.link(executor) else { return };
        let body = ReserveBody {
            eval_id: record.id.as_str().to_owned(),
            ttl: self.settings.lease.as_secs_f64(),
            attempt: record.state.attempt + 1,
        };
        let key = record.id.attempt(body.attempt);
        self.calls.reserve(ticket, executor, link, key, body);
    }

    /// Reads the executors of this process at the start: their slots are known from the first task on.
    pub(super) fn probe_local(&mut self) {
        for id in self.executors.ids() {
            let Some((_, link)) = self.executors.link(id) else { continue };
            if let Some(report) = link.local_capacity() {
                let changes = self.queue.changes(id);
                self.probed(id, Ok(report), changes);
            }
        }
        self.set_gauges();
    }

    /// Asks every executor for its capacity, unless an earlier probe is unanswered.
    pub(super) fn probe(&mut self) {
        for id in self.executors.ids() {
            if let Some(link) = self.executors.begin_probe(id) {
                self.calls.probe(id, link, self.queue.changes(id));
            }
        }
    }

    /// Takes in the answer to a probe.
    pub(super) fn probed(
        &mut self,
        id: ExecutorId,
        report: Result<CapacityReport, String>,
        changes: u64,
    ) {
        let slots = match &report {
            Ok(report) => Some(self.queue.executor_up(id, report, changes)),
            Err(_) => {
                self.queue.executor_down(id);
                None
            }
        };
        self.executors.end_probe(id, report);
        if let Some(slots) = slots {
            self.declare_slots(id, slots);
        }
    }
}
