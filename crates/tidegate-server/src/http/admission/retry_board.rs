use std::time::{Duration, Instant};
use tidegate::Refusal;
use tidegate::admission::{self, RetryAdvisor, RetryBounds};

/// Retry advice for every kind of refusal, with a clock: its pace is computed a few times a second, and each
/// refused client gets a turn of its own.
#[derive(Debug)]
pub struct RetryBoard {
    start: Instant,
    board: admission::RetryBoard,
}

// === impl RetryBoard ===

impl RetryBoard {
    /// A board with the pace of an advisor that has observed nothing.
    #[must_use]
    pub fn new(bounds: RetryBounds) -> Self {
        Self { start: Instant::now(), board: admission::RetryBoard::new(bounds) }
    }

    /// Replaces the pace of every limit.
    pub fn publish(&self, advisor: &RetryAdvisor) {
        self.board.publish(advisor);
    }

    /// The wait of the next message that is refused so.
    #[must_use]
    pub fn advice(&self, refusal: Refusal) -> Duration {
        self.board.peek(refusal, self.start.elapsed())
    }

    /// The wait of this message, until the next turn at its limit.
    pub fn advice_for_one(&self, refusal: Refusal) -> Duration {
        self.board.take(refusal, self.start.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate::MessagePriority;
    use tidegate::admission::Reason;

    #[test]
    fn those_who_are_refused_together_are_told_different_times() {
        let board = RetryBoard::new(RetryBounds::default());
        let refusal = Refusal { priority: MessagePriority::Low, reason: Reason::PriorityLimit };
        let mut told: Vec<_> =
            (0..100).map(|_| board.advice_for_one(refusal).as_millis()).collect();
        told.sort_unstable();
        told.dedup();
        assert!(told.len() > 90, "{told:?}");
        assert!(board.advice(refusal) > RetryBounds::default().min, "a hundred wait");
    }
}
