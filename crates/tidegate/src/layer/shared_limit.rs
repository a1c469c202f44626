use super::retry_after;
use crate::Outcome;
use crate::admission::RetryBounds;
use crate::limit::{ConcurrencyLimit, LimitConfig, LimitSnapshot, Started, UpstreamOutcome};
use http::{HeaderMap, StatusCode};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tidegate_core::routing::{Demand, ServiceEstimator};

/// Concurrency limit that a layer, its clones and its services share.
///
/// Requests themselves drive it as they start and end: no task and no timer.
#[derive(Debug)]
pub(super) struct SharedLimit {
    start: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    limit: ConcurrencyLimit,
    ticked_at: Duration,
    demand: Demand,
    service: ServiceEstimator,
}

/// Slot of one request. Dropping it releases the slot and records the outcome.
#[derive(Debug)]
pub(super) struct LimitSlot {
    shared: Arc<SharedLimit>,
    since: Duration,
    started: Started,
    outcome: UpstreamOutcome,
}

/// Refusal of a request: the limit at that moment, and the wait before a retry.
#[derive(Debug)]
pub(super) struct LimitRefusal {
    pub snapshot: LimitSnapshot,
    wait: Duration,
}

/// The shortest round of the limit: more ticks than one in this time decide nothing.
const TICK: Duration = Duration::from_millis(10);

// === impl SharedLimit ===

impl SharedLimit {
    pub(super) fn new(config: LimitConfig, bounds: RetryBounds) -> Self {
        let state = State {
            limit: ConcurrencyLimit::new(config),
            ticked_at: Duration::ZERO,
            demand: Demand::new(bounds),
            service: ServiceEstimator::default(),
        };
        Self { start: Instant::now(), state: Mutex::new(state) }
    }

    pub(super) fn set_bounds(&self, bounds: RetryBounds) {
        self.lock().0.demand.set_bounds(bounds);
    }

    /// Takes a slot.
    ///
    /// # Errors
    ///
    /// When the limit is reached. Nothing is taken.
    pub(super) fn try_start(self: &Arc<Self>) -> Result<LimitSlot, LimitRefusal> {
        let (mut state, now) = self.lock();
        state.pass_time(now);
        if state.limit.allows(now) {
            let started = state.limit.on_start(now);
            state.demand.begin(now);
            drop(state);
            let shared = Arc::clone(self);
            return Ok(LimitSlot {
                shared,
                since: now,
                started,
                outcome: UpstreamOutcome::Abandoned,
            });
        }
        let wait = state.count_refusal(now);
        Err(LimitRefusal { snapshot: state.limit.snapshot(), wait })
    }

    pub(super) fn snapshot(&self) -> LimitSnapshot {
        self.lock().0.limit.snapshot()
    }

    /// Locks the state. The time is read under the lock, so that it never goes back from one holder to the next.
    ///
    /// A panic while the lock is held leaves a state that is right: every change to it is one call.
    fn lock(&self) -> (MutexGuard<'_, State>, Duration) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state, self.start.elapsed())
    }
}

// === impl State ===

impl State {
    /// Counts a refusal, and returns the wait of its client.
    fn count_refusal(&mut self, now: Duration) -> Duration {
        let wait = self.demand.refuse(now);
        self.limit.on_waiting(now, self.demand.is_awaited());
        wait
    }

    fn count_end(&mut self, now: Duration, slot: &LimitSlot) {
        // The service's own refusals take no time.
        let is_service = slot.outcome != UpstreamOutcome::Refused;
        self.demand.end(now, is_service.then(|| now.saturating_sub(slot.since)));
        self.demand.observe(&mut self.service, now);
        self.limit.on_end(now, slot.started, slot.outcome);
        self.limit.on_waiting(now, self.demand.is_awaited());
    }

    fn pass_time(&mut self, now: Duration) {
        if now >= self.ticked_at + TICK {
            self.ticked_at = now;
            self.limit.tick(now);
        }
    }
}

// === impl LimitSlot ===

impl LimitSlot {
    /// Records the status of the response: a refusal is one however its body ends.
    pub(super) fn responded(&mut self, status: StatusCode) {
        self.outcome = match status.as_u16() {
            429 | 503 | 529 => UpstreamOutcome::Refused,
            _ => UpstreamOutcome::Ignored,
        };
    }

    pub(super) fn finish(mut self, outcome: Outcome) {
        if self.outcome != UpstreamOutcome::Refused {
            self.outcome = match outcome {
                Outcome::Success => UpstreamOutcome::Success,
                Outcome::Ignored => UpstreamOutcome::Ignored,
                Outcome::Dropped => UpstreamOutcome::ConnectFailed,
            };
        }
    }
}

impl Drop for LimitSlot {
    fn drop(&mut self) {
        let (mut state, now) = self.shared.lock();
        state.count_end(now, self);
        state.pass_time(now);
    }
}

// === impl LimitRefusal ===

impl LimitRefusal {
    pub(super) fn insert_wait(&self, headers: &mut HeaderMap) {
        retry_after::insert(self.wait, headers);
    }
}
