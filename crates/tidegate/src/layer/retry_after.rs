use crate::admission::{RetryAdvisor, RetryBoard, RetryBounds};
use crate::{InFlightTracker, Refusal};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// The shortest time between two snapshots of the tracker: rates over less than this are noise.
const OBSERVE_MS: u64 = 100;

/// The measured Retry-After of one layer and its clones.
///
/// Requests themselves drive the measurement, at most one snapshot every 100 ms: no task and no timer.
#[derive(Debug)]
pub(super) struct MeasuredRetryAfter {
    start: Instant,
    observed_ms: AtomicU64,
    advisor: Mutex<RetryAdvisor>,
    board: RetryBoard,
}

// === impl MeasuredRetryAfter ===

impl MeasuredRetryAfter {
    pub(super) fn new(tracker: &InFlightTracker, bounds: RetryBounds) -> Self {
        let mut advisor = RetryAdvisor::new();
        advisor.observe(Duration::ZERO, &tracker.stats());
        let board = RetryBoard::new(bounds);
        board.publish(&advisor);
        Self {
            start: Instant::now(),
            observed_ms: AtomicU64::new(0),
            advisor: Mutex::new(advisor),
            board,
        }
    }

    /// Takes a snapshot of the tracker if the last one is old enough and no other thread is taking one.
    pub(super) fn observe(&self, tracker: &InFlightTracker) {
        let now = self.start.elapsed();
        let now_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        if now_ms < self.observed_ms.load(Ordering::Relaxed).saturating_add(OBSERVE_MS) {
            return;
        }
        if let Ok(mut advisor) = self.advisor.try_lock() {
            self.observed_ms.store(now_ms, Ordering::Relaxed);
            advisor.observe(now, &tracker.stats());
            self.board.publish(&advisor);
        }
    }

    /// Adds the wait of one refused client to the headers of its response, unless they name one already.
    pub(super) fn insert(&self, refusal: Refusal, headers: &mut HeaderMap) {
        if headers.contains_key(header::RETRY_AFTER) {
            return;
        }
        insert(self.board.take(refusal, self.start.elapsed()), headers);
    }
}

/// Adds a wait to the headers of a refusal, in seconds and in milliseconds.
pub(super) fn insert(wait: Duration, headers: &mut HeaderMap) {
    let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    // Whole seconds, rounded up: an earlier retry would be refused again.
    headers.insert(header::RETRY_AFTER, HeaderValue::from(wait_ms.div_ceil(1000)));
    headers.insert(RETRY_AFTER_MS, HeaderValue::from(wait_ms));
}
