use super::counts::WorkerCounts;
use super::execution::Execution;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tidegate::admission::{RetryBounds, Spread};
use tidegate::capacity::ExecutorSlots;
use tidegate::routing::DrainAdvisor;
use tidegate::task::{Ending, ExecutionKey};

/// Between two looks at how fast slots come free. Shorter, and a single end would look like a rate.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// All that an executor knows, under one lock.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) slots: ExecutorSlots,
    pub(super) known: HashMap<ExecutionKey, Arc<Execution>>,
    pub(super) counts: WorkerCounts,
    /// When it will have ended, once it is about to.
    pub(super) ends_at: Option<Duration>,
    /// When the timer looks next.
    pub(super) timer_at: Option<Duration>,
    past: Past,
    advisor: DrainAdvisor,
    looked_at: Duration,
    bounds: RetryBounds,
    spread: Spread,
}

/// Executions that are over, the oldest first. Those that [`ExecutorSlots`] remembers, in the same order.
#[derive(Debug)]
struct Past {
    all: VecDeque<Arc<Execution>>,
    max: usize,
    /// Those of them whose output is still held.
    written: VecDeque<Arc<Execution>>,
    bytes: usize,
    bytes_max: usize,
}

// === impl Table ===

impl Table {
    pub(super) fn new(slots: ExecutorSlots, past_max: usize, past_bytes_max: usize) -> Self {
        let bounds = RetryBounds::default();
        Self {
            slots: slots.remembering(past_max),
            known: HashMap::new(),
            counts: WorkerCounts::default(),
            ends_at: None,
            timer_at: None,
            past: Past {
                all: VecDeque::new(),
                max: past_max,
                written: VecDeque::new(),
                bytes: 0,
                bytes_max: past_bytes_max,
            },
            advisor: DrainAdvisor::new(bounds),
            looked_at: Duration::ZERO,
            bounds,
            spread: Spread::default(),
        }
    }

    /// Whether nothing runs.
    pub(super) fn is_idle(&self) -> bool {
        self.slots.running().next().is_none()
    }

    /// The executions that hold a slot.
    pub(super) fn live(&self) -> Vec<Arc<Execution>> {
        self.slots.running().filter_map(|(key, _)| self.known.get(key)).cloned().collect()
    }

    /// Ends the reservations that have run out.
    pub(super) fn expire_reservations(&mut self, now: Duration) {
        self.counts.reservations_expired += self.slots.expire_reservations(now) as u64;
    }

    /// For how much longer this one exists, when it is about to end.
    pub(super) fn ends_in(&self, now: Duration) -> Option<Duration> {
        self.ends_at.map(|at| at.saturating_sub(now).max(self.bounds.min))
    }

    /// Whether the timer has to be told of something that ends before it looks again.
    pub(super) fn is_earlier(&mut self, expires_at: Duration) -> bool {
        let earlier = self.timer_at.is_none_or(|at| expires_at < at);
        if earlier {
            self.timer_at = Some(expires_at);
        }
        earlier
    }

    /// Looks at how fast slots come free, before something changes that should be seen.
    pub(super) fn look(&mut self, now: Duration) {
        let idle = self.is_idle();
        // What was idle until now has not been slow.
        if idle || now >= self.looked_at + LOOK_EVERY {
            let held = u64::from(self.slots.occupancy(now).running);
            let (ended, refused) = (self.counts.ended_total(), self.counts.refused_full());
            self.advisor.observe(now, ended, refused, held);
            self.looked_at = now;
        }
    }

    /// When somebody who was refused should come back.
    pub(super) fn retry_after(&self) -> Duration {
        self.bounds.spread(self.advisor.advise(), self.spread.next())
    }

    /// An execution is over: its slot is free, and what became of it is remembered. False when it was before.
    pub(super) fn end(&mut self, execution: &Arc<Execution>, ending: Ending) -> bool {
        if !self.slots.finish(&execution.key, execution.fence) {
            return false;
        }
        *self.counts.ended.entry((ending.outcome, ending.reason)).or_default() += 1;
        let ran_us = u64::try_from(execution.ran().as_micros()).unwrap_or(u64::MAX);
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
    /// Remembers one more, and gives back those that are forgotten for it.
    fn push(&mut self, execution: &Arc<Execution>) -> Vec<Arc<Execution>> {
        self.all.push_back(Arc::clone(execution));
        let bytes = execution.bytes();
        if bytes > 0 {
            self.written.push_back(Arc::clone(execution));
            self.bytes += bytes;
        }
        while self.bytes > self.bytes_max {
            self.forget_output();
        }
        let mut forgotten = Vec::new();
        while self.all.len() > self.max {
            let Some(oldest) = self.all.pop_front() else { break };
            if self.written.front().is_some_and(|first| Arc::ptr_eq(first, &oldest)) {
                self.forget_output();
            }
            forgotten.push(oldest);
        }
        forgotten
    }

    fn forget_output(&mut self) {
        let Some(oldest) = self.written.pop_front() else { return };
        self.bytes -= oldest.bytes();
        oldest.sink.log().forget();
    }
}
