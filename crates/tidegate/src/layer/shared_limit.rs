use super::retry_after;
use crate::Outcome;
use crate::admission::{RetryBounds, Spread};
use crate::limit::{ConcurrencyLimit, LimitConfig, LimitSnapshot, Started, UpstreamOutcome};
use http::{HeaderMap, StatusCode};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tidegate_core::routing::DrainAdvisor;

/// Concurrency limit that a layer, its clones and its services share.
///
/// Requests themselves drive it as they start and end: no task and no timer.
#[derive(Debug)]
pub(super) struct SharedLimit {
    start: Instant,
    spread: Spread,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    limit: ConcurrencyLimit,
    ticked_at: Duration,
    /// Ends until the last refusal is forgotten: as many as were in flight then, which is about one latency.
    awaited_ends: u32,
    bounds: RetryBounds,
    advisor: DrainAdvisor,
    observed_at: Duration,
    ended: u64,
    refused: u64,
}

/// Slot of one request. Dropping it releases the slot and records the outcome.
#[derive(Debug)]
pub(super) struct LimitSlot {
    shared: Arc<SharedLimit>,
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

/// The shortest time between two observations of the advisor: rates over less than this are noise.
const OBSERVE: Duration = Duration::from_millis(100);

// === impl SharedLimit ===

impl SharedLimit {
    pub(super) fn new(config: LimitConfig, bounds: RetryBounds) -> Self {
        let state = State {
            limit: ConcurrencyLimit::new(config),
            ticked_at: Duration::ZERO,
            awaited_ends: 0,
            bounds,
            advisor: State::advisor(bounds, Duration::ZERO, 0, 0),
            observed_at: Duration::ZERO,
            ended: 0,
            refused: 0,
        };
        Self { start: Instant::now(), spread: Spread::default(), state: Mutex::new(state) }
    }

    pub(super) fn set_bounds(&self, bounds: RetryBounds) {
        let (mut state, now) = self.lock();
        state.bounds = bounds;
        state.advisor = State::advisor(bounds, now, state.ended, state.refused);
        state.observed_at = now;
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
            drop(state);
            let shared = Arc::clone(self);
            return Ok(LimitSlot { shared, started, outcome: UpstreamOutcome::Abandoned });
        }
        state.count_refusal(now);
        let wait = state.bounds.spread(state.advisor.advise(), self.spread.next());
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
    /// Creates an advisor that counts from these totals.
    fn advisor(bounds: RetryBounds, now: Duration, ended: u64, refused: u64) -> DrainAdvisor {
        let mut advisor = DrainAdvisor::new(bounds);
        advisor.observe(now, ended, refused, 0);
        advisor
    }

    /// Counts a refusal. A limit that refuses binds, also while its slots fill again: without a queue, all slots
    /// are taken for only half of the time at twice the capacity.
    fn count_refusal(&mut self, now: Duration) {
        self.refused += 1;
        self.awaited_ends = self.limit.in_flight();
        self.limit.on_waiting(now, self.awaited_ends > 0);
    }

    fn count_end(&mut self, now: Duration, started: Started, outcome: UpstreamOutcome) {
        self.ended += 1;
        self.limit.on_end(now, started, outcome);
        self.awaited_ends = self.awaited_ends.saturating_sub(1);
        self.limit.on_waiting(now, self.awaited_ends > 0);
    }

    fn pass_time(&mut self, now: Duration) {
        if now >= self.ticked_at + TICK {
            self.ticked_at = now;
            self.limit.tick(now);
        }
        if now >= self.observed_at + OBSERVE {
            self.observed_at = now;
            let in_flight = u64::from(self.limit.in_flight());
            self.advisor.observe(now, self.ended, self.refused, in_flight);
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
        state.count_end(now, self.started, self.outcome);
        state.pass_time(now);
    }
}

// === impl LimitRefusal ===

impl LimitRefusal {
    pub(super) fn insert_wait(&self, headers: &mut HeaderMap) {
        retry_after::insert(self.wait, headers);
    }
}
