use super::config::ExecutorConfig;
use super::counts::WorkerCounts;
use super::execution::Execution;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tidegate::admission::RetryBounds;
use tidegate::capacity::ExecutorSlots;
use tidegate::routing::{Demand, ServiceEstimator};
use tidegate::task::{Ending, ExecutionKey};

/// Slots and executions of an executor, under one lock.
#[derive(Debug)]
pub(super) struct ExecutionTable {
    pub(super) slots: ExecutorSlots,
    pub(super) known: HashMap<ExecutionKey, Arc<Execution>>,
    pub(super) counts: WorkerCounts,
    /// End of the grace period, while the executor drains.
    pub(super) ends_at: Option<Duration>,
    /// Next wake-up of the expiry timer.
    pub(super) timer_at: Option<Duration>,
    past: Past,
    bounds: RetryBounds,
    demand: Demand,
    service: ServiceEstimator,
}

/// Ended executions, the oldest first: those that [`ExecutorSlots`] remembers, in the same order.
#[derive(Debug)]
struct Past {
    all: VecDeque<Arc<Execution>>,
    max: usize,
    /// Ended executions whose output is still in memory.
    with_output: VecDeque<Arc<Execution>>,
    bytes: usize,
    bytes_max: usize,
}

// === impl ExecutionTable ===

impl ExecutionTable {
    pub(super) fn new(config: &ExecutorConfig) -> Self {
        let bounds = RetryBounds::default();
        let slots = ExecutorSlots::new(config.max_concurrent, config.fence_floor);
        Self {
            slots: slots.with_past_max(config.past_max),
            known: HashMap::new(),
            counts: WorkerCounts::default(),
            ends_at: None,
            timer_at: None,
            past: Past {
                all: VecDeque::new(),
                max: config.past_max,
                with_output: VecDeque::new(),
                bytes: 0,
                bytes_max: config.past_bytes_max,
            },
            bounds,
            demand: Demand::new(bounds),
            service: ServiceEstimator::default(),
        }
    }

    /// Nothing runs.
    pub(super) fn is_idle(&self) -> bool {
        self.slots.running().next().is_none()
    }

    /// Executions that hold a slot.
    pub(super) fn live(&self) -> Vec<Arc<Execution>> {
        self.slots.running().filter_map(|(key, _)| self.known.get(key)).cloned().collect()
    }

    /// Ends expired reservations.
    pub(super) fn expire_reservations(&mut self, now: Duration) {
        self.counts.reservations_expired += self.slots.expire_reservations(now) as u64;
    }

    /// Time until the executor has ended, while it drains.
    pub(super) fn ends_in(&self, now: Duration) -> Option<Duration> {
        self.ends_at.map(|at| at.saturating_sub(now).max(self.bounds.min))
    }

    /// True when this expiry is before the expiry timer's next wake-up; then it becomes the next.
    pub(super) fn is_earlier(&mut self, expires_at: Duration) -> bool {
        let earlier = self.timer_at.is_none_or(|at| expires_at < at);
        if earlier {
            self.timer_at = Some(expires_at);
        }
        earlier
    }

    /// Counts an execution that begins in its slot.
    pub(super) fn begin(&mut self, now: Duration) {
        self.counts.started += 1;
        self.demand.begin(now);
    }

    /// Retry advice for a request that found no slot free.
    pub(super) fn retry_after(&mut self, now: Duration) -> Duration {
        self.demand.refuse(now)
    }

    /// Frees the slot of an execution and remembers its ending. False when it had ended before.
    pub(super) fn end(
        &mut self,
        execution: &Arc<Execution>,
        ending: Ending,
        now: Duration,
    ) -> bool {
        if !self.slots.finish(&execution.key, execution.fence) {
            return false;
        }
        *self.counts.ended.entry((ending.outcome, ending.reason)).or_default() += 1;
        let ran = execution.ran();
        self.demand.end(now, Some(ran));
        self.demand.observe(&mut self.service, now);
        let ran_us = u64::try_from(ran.as_micros()).unwrap_or(u64::MAX);
        self.counts.ran_us = self.counts.ran_us.saturating_add(ran_us);
        execution.set_ended(ending);
        for forgotten in self.past.push(execution) {
            self.known.remove(&forgotten.key);
        }
        true
    }
}

// === impl Past ===

impl Past {
    /// Remembers one more, and returns those that are forgotten for it.
    fn push(&mut self, execution: &Arc<Execution>) -> Vec<Arc<Execution>> {
        self.all.push_back(Arc::clone(execution));
        let bytes = execution.bytes();
        if bytes > 0 {
            self.with_output.push_back(Arc::clone(execution));
            self.bytes += bytes;
        }
        while self.bytes > self.bytes_max {
            self.discard_output();
        }
        let mut forgotten = Vec::new();
        while self.all.len() > self.max {
            let Some(oldest) = self.all.pop_front() else { break };
            if self.with_output.front().is_some_and(|first| Arc::ptr_eq(first, &oldest)) {
                self.discard_output();
            }
            forgotten.push(oldest);
        }
        forgotten
    }

    fn discard_output(&mut self) {
        let Some(oldest) = self.with_output.pop_front() else { return };
        self.bytes -= oldest.bytes();
        oldest.discard();
    }
}
