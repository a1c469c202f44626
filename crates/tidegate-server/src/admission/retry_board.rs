use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tidegate::admission::{Reason, RetryAdvisor};
use tidegate::{MessagePriority, Refusal};

/// The current advice for every kind of refusal, computed a few times a second and read on every refusal.
#[derive(Debug)]
pub struct RetryBoard {
    wait_ms: [[AtomicU64; 2]; 4],
}

// === impl RetryBoard ===

impl RetryBoard {
    /// A board that shows what the advisor says now.
    #[must_use]
    pub fn new(advisor: &RetryAdvisor) -> Self {
        let board = Self { wait_ms: Default::default() };
        board.publish(advisor);
        board
    }

    /// Replaces everything on the board.
    pub fn publish(&self, advisor: &RetryAdvisor) {
        for priority in MessagePriority::ALL {
            for reason in Reason::ALL {
                let wait = advisor.advise(Refusal { priority, reason });
                let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                self.wait_ms[priority.index()][reason.index()].store(wait_ms, Ordering::Relaxed);
            }
        }
    }

    /// When a message that was refused so should come back.
    #[must_use]
    pub fn advice(&self, refusal: Refusal) -> Duration {
        let cell = &self.wait_ms[refusal.priority.index()][refusal.reason.index()];
        Duration::from_millis(cell.load(Ordering::Relaxed))
    }
}
