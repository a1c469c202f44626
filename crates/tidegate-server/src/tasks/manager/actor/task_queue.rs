use super::runtime_ids::RuntimeIds;
use super::task_book::TaskBook;
use crate::tasks::execution::CapacityReport;
use crate::tasks::manager::unix_time::now_ms;
use std::collections::BTreeSet;
use std::time::Duration;
use tidegate::capacity::{
    Claims, Dispatcher, ExecutorAnswer, ExecutorId, Fleet, LeaseAnswer, Order, Placement,
    QueuePosition, RuntimeId, Ticket, WaitEstimate,
};
use tidegate::rng::Rng;
use tidegate::tasks::TaskRecord;
use tokio::time::Instant;

/// Retry advice before any slot time is measured.
const RETRY_AFTER_UNKNOWN: Duration = Duration::from_secs(5);
/// Shortest and longest retry advice.
const RETRY_AFTER_MIN: Duration = Duration::from_millis(50);
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// Queue of tasks for slots: the dispatcher with its clock, delayed retries, and the estimate of waits.
pub(super) struct TaskQueue {
    dispatcher: Dispatcher,
    runtimes: RuntimeIds,
    /// Tasks that wait for a time, in milliseconds of Unix time.
    delayed: BTreeSet<(u64, Ticket)>,
    estimate: WaitEstimate,
    started: Instant,
}

// === impl TaskQueue ===

impl TaskQueue {
    pub(super) fn new(placement: Placement) -> Self {
        Self {
            dispatcher: Dispatcher::new(placement),
            runtimes: RuntimeIds::default(),
            delayed: BTreeSet::new(),
            estimate: WaitEstimate::default(),
            started: Instant::now(),
        }
    }

    /// Time since the start: the dispatcher's clock.
    pub(super) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Time at which the dispatcher has something to do.
    pub(super) fn next_wake(&self) -> Option<Instant> {
        self.dispatcher.next_wake(self.now()).map(|at| self.started + at)
    }

    /// Queues a task: now, or from its retry time on.
    pub(super) fn push(&mut self, ticket: Ticket, record: &TaskRecord) {
        match record.state.not_before_ms {
            Some(at_ms) if at_ms > now_ms() => {
                self.delayed.insert((at_ms, ticket));
            }
            _ => {
                let runtime = self.runtimes.id(&record.spec.runtime);
                self.dispatcher.submit(ticket, record.spec.priority, runtime);
            }
        }
    }

    /// Queues the delayed tasks whose time has come.
    pub(super) fn push_due(&mut self, tasks: &TaskBook) {
        let now_ms = now_ms();
        while let Some((at_ms, ticket)) = self.delayed.first().copied() {
            if at_ms > now_ms {
                return;
            }
            self.delayed.pop_first();
            if let Some(record) = tasks.record(ticket) {
                self.push(ticket, record);
            }
        }
    }

    /// Removes a task from the dispatcher.
    pub(super) fn withdraw(&mut self, ticket: Ticket) -> Option<Order> {
        self.dispatcher.withdraw(ticket)
    }

    /// Removes a delayed task.
    pub(super) fn remove_delayed(&mut self, ticket: Ticket, not_before_ms: Option<u64>) {
        if let Some(at_ms) = not_before_ms {
            self.delayed.remove(&(at_ms, ticket));
        }
    }

    /// Orders for the tasks that can get a slot now.
    pub(super) fn orders(&mut self, rng: &Rng) -> Vec<Order> {
        let now = self.now();
        self.dispatcher.orders(now, &mut || rng.next_u64()).into_iter().collect()
    }

    /// Takes in the slot ledger's answer to a lease request.
    pub(super) fn leased(&mut self, ticket: Ticket, answer: LeaseAnswer) -> Option<Order> {
        let now = self.now();
        self.dispatcher.leased(ticket, answer, now)
    }

    /// Takes in an executor's answer to a reservation request.
    pub(super) fn reserved(&mut self, ticket: Ticket, answer: ExecutorAnswer) -> Option<Order> {
        let now = self.now();
        self.dispatcher.reserved(ticket, answer, now)
    }

    /// Takes in an executor's answer to an attempt.
    pub(super) fn answered(&mut self, ticket: Ticket, answer: ExecutorAnswer) -> Option<Order> {
        let now = self.now();
        self.dispatcher.answered(ticket, answer, now)
    }

    /// Frees the slot of a task that occupied it for `slot_time`; zero when it never ran.
    pub(super) fn slot_freed(&mut self, ticket: Ticket, slot_time: Duration) -> Option<Order> {
        if !slot_time.is_zero() {
            self.estimate.record(slot_time);
        }
        self.dispatcher.finished(ticket)
    }

    /// Orders after a change of the slot ledger.
    pub(super) fn ledger_changed(&mut self) -> Vec<Order> {
        let now = self.now();
        self.dispatcher.ledger_changed(now).into_iter().collect()
    }

    /// Counts a task that already runs on an executor.
    pub(super) fn resume(&mut self, ticket: Ticket, executor: ExecutorId, record: &TaskRecord) {
        let position = QueuePosition { priority: record.spec.priority, seq: 0 };
        let runtime = self.runtimes.id(&record.spec.runtime);
        self.dispatcher.resume(ticket, executor, position, runtime);
    }

    /// Counts a task that was claimed for an executor's slot, and is being sent there.
    pub(super) fn claimed(&mut self, ticket: Ticket, executor: ExecutorId, record: &TaskRecord) {
        let position = QueuePosition { priority: record.spec.priority, seq: 0 };
        let runtime = self.runtimes.id(&record.spec.runtime);
        self.dispatcher.claimed(ticket, executor, position, runtime);
    }

    /// Known state of the executors.
    pub(super) fn fleet(&self) -> &Fleet {
        self.dispatcher.fleet()
    }

    /// Names of runtimes.
    pub(super) fn runtime_names(&self, ids: &[RuntimeId]) -> Vec<String> {
        ids.iter().filter_map(|id| self.runtimes.name(*id)).map(str::to_owned).collect()
    }

    /// Time at which there may be a claim to make.
    pub(super) fn next_claim(&self, claims: &Claims) -> Option<Instant> {
        claims.next_wake(self.fleet(), self.now()).map(|at| self.started + at)
    }

    /// Counter of this manager's changes to an executor's slots, to be taken before a probe.
    pub(super) fn changes(&self, executor: ExecutorId) -> u64 {
        self.dispatcher.changes(executor)
    }

    /// Takes in a capacity report; returns the slots that may be used.
    pub(super) fn executor_up(
        &mut self,
        executor: ExecutorId,
        report: &CapacityReport,
        changes: u64,
    ) -> u32 {
        let serves = self.runtimes.serves(report);
        let slots = if report.draining { 0 } else { report.max_concurrent };
        self.dispatcher.executor_up(executor, slots, serves);
        self.dispatcher.reported(executor, report.running + report.reserved, changes);
        slots
    }

    pub(super) fn executor_down(&mut self, executor: ExecutorId) {
        self.dispatcher.executor_down(executor);
    }

    /// Executions of this manager on an executor.
    pub(super) fn own_executions(&self, executor: ExecutorId) -> u32 {
        self.dispatcher.fleet().get(executor).map_or(0, |belief| belief.own)
    }

    /// Queue position of a task, and its estimated wait.
    pub(super) fn position(&self, ticket: Ticket) -> Option<(u64, Option<Duration>)> {
        let ahead = self.dispatcher.ahead_of(ticket)?;
        let fleet = self.dispatcher.fleet();
        Some((ahead, self.estimate.wait(ahead, fleet.slots(), fleet.free(self.now()))))
    }

    /// Retry advice while the queue is full: the estimated time until one task has ended.
    pub(super) fn retry_after(&self) -> Duration {
        let wait = self.estimate.wait(0, self.dispatcher.fleet().slots(), 0);
        wait.unwrap_or(RETRY_AFTER_UNKNOWN).clamp(RETRY_AFTER_MIN, RETRY_AFTER_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::manager::actor::task_book::tests::record;

    #[tokio::test(start_paused = true)]
    async fn a_task_with_a_retry_time_is_queued_when_that_has_come() {
        let (mut queue, mut tasks) = (TaskQueue::new(Placement::default()), TaskBook::default());
        let mut delayed = record("a");
        delayed.state.not_before_ms = Some(now_ms() + 3_600_000);
        let ticket = tasks.insert(delayed.clone()).unwrap();
        queue.push(ticket, &delayed);
        queue.push_due(&tasks);
        assert!(queue.position(ticket).is_none());
        queue.remove_delayed(ticket, delayed.state.not_before_ms);
        delayed.state.not_before_ms = Some(1);
        queue.push(ticket, &delayed);
        assert_eq!(queue.position(ticket).map(|(ahead, _)| ahead), Some(0));
        assert_eq!(queue.retry_after(), RETRY_AFTER_UNKNOWN, "nothing is measured");
    }
}
