use super::return_schedule::{ReturnPace, ReturnSchedule};
use super::{MessagePriority, Reason, Refusal, RetryAdvisor, RetryBounds};
use crate::sync::{AtomicU64, Ordering};
use std::time::Duration;

/// Retry advice for every kind of refusal: its pace is published a few times a second, and each refused client
/// gets a turn of its own. Shared between threads without a lock.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::admission::*;
///
/// let board = RetryBoard::new(RetryBounds::default());
/// let refusal = Refusal { priority: MessagePriority::Low, reason: Reason::PriorityLimit };
/// let waits = [0; 3].map(|_| board.take(refusal, Duration::from_secs(1)));
/// assert!(waits[0] < waits[1] && waits[1] < waits[2], "{waits:?}");
/// ```
#[derive(Debug)]
pub struct RetryBoard {
    bounds: RetryBounds,
    /// By priority, and the one that the priorities share at the global limit.
    lanes: [BoardLane; MessagePriority::ALL.len() + 1],
}

/// One limit.
#[derive(Debug)]
struct BoardLane {
    service_us: AtomicU64,
    slots: AtomicU64,
    overdue_us: AtomicU64,
    returns: ReturnSchedule,
}

// === impl RetryBoard ===

impl RetryBoard {
    /// Creates a board with the pace of an advisor that has observed nothing.
    #[must_use]
    pub fn new(bounds: RetryBounds) -> Self {
        let lane = |_| BoardLane {
            service_us: AtomicU64::new(0),
            slots: AtomicU64::new(0),
            overdue_us: AtomicU64::new(0),
            returns: ReturnSchedule::default(),
        };
        let board = Self { bounds, lanes: std::array::from_fn(lane) };
        board.publish(&RetryAdvisor::new());
        board
    }

    /// Publishes the pace of every limit.
    pub fn publish(&self, advisor: &RetryAdvisor) {
        for priority in MessagePriority::ALL {
            for reason in Reason::ALL {
                let refusal = Refusal { priority, reason };
                self.lane(refusal).publish(advisor.pace(refusal));
            }
        }
    }

    /// Gives a refused client the next turn at its limit, and returns its wait.
    pub fn take(&self, refusal: Refusal, now: Duration) -> Duration {
        let lane = self.lane(refusal);
        lane.returns.take(lane.pace(), self.bounds, now)
    }

    /// Returns the wait that a client would be told if it were refused so now.
    #[must_use]
    pub fn peek(&self, refusal: Refusal, now: Duration) -> Duration {
        let lane = self.lane(refusal);
        lane.returns.peek(lane.pace(), self.bounds, now)
    }

    fn lane(&self, refusal: Refusal) -> &BoardLane {
        &self.lanes[RetryAdvisor::lane_of(refusal)]
    }
}

// === impl BoardLane ===

impl BoardLane {
    fn publish(&self, pace: ReturnPace) {
        self.service_us.store(micros(pace.service), Ordering::Relaxed);
        self.slots.store(pace.slots, Ordering::Relaxed);
        self.overdue_us.store(micros(pace.overdue), Ordering::Relaxed);
    }

    fn pace(&self) -> ReturnPace {
        ReturnPace {
            service: Duration::from_micros(self.service_us.load(Ordering::Relaxed)),
            slots: self.slots.load(Ordering::Relaxed),
            overdue: Duration::from_micros(self.overdue_us.load(Ordering::Relaxed)),
        }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
