use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tidegate::admission::{Reason, RetryAdvisor, RetryBounds, Spread};
use tidegate::{MessagePriority, Refusal};

/// The current advice for every kind of refusal, computed a few times a second and read on every refusal.
#[derive(Debug)]
pub struct RetryBoard {
    bounds: RetryBounds,
    wait_ms: [[AtomicU64; 2]; 4],
    spread: Spread,
}

// === impl RetryBoard ===

impl RetryBoard {
    /// A board that shows what an advisor within these bounds says before it has seen anything.
    #[must_use]
    pub fn new(bounds: RetryBounds) -> Self {
        let board = Self { bounds, wait_ms: Default::default(), spread: Spread::default() };
        board.publish(&RetryAdvisor::new(bounds));
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

    /// When messages that are refused so should come back, on average.
    #[must_use]
    pub fn advice(&self, refusal: Refusal) -> Duration {
        let cell = &self.wait_ms[refusal.priority.index()][refusal.reason.index()];
        Duration::from_millis(cell.load(Ordering::Relaxed))
    }

    /// When this one should come back: the advice, spread so that those who are refused together do not
    /// return together.
    pub fn advice_for_one(&self, refusal: Refusal) -> Duration {
        self.bounds.spread(self.advice(refusal), self.spread.next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_are_refused_together_are_told_different_times_around_one_mean() {
        let board = RetryBoard::new(RetryBounds::default());
        let refusal = Refusal { priority: MessagePriority::Low, reason: Reason::PriorityLimit };
        let advice_ms = board.advice(refusal).as_millis() as f64;
        let mut told: Vec<f64> =
            (0..1000).map(|_| board.advice_for_one(refusal).as_secs_f64() * 1e3).collect();
        let mean = told.iter().sum::<f64>() / 1000.0;
        assert!((mean - advice_ms).abs() < advice_ms * 0.01, "{mean} around {advice_ms}");
        told.sort_by(f64::total_cmp);
        let widest = told.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
        assert!(widest < advice_ms * 0.01, "no gap into which many would fall: {widest} ms");
    }
}
