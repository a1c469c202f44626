use crate::admission::RetryBounds;
use crate::flow::{FreeRate, Rate};
use std::time::Duration;

/// Computes the retry advice for requests that find every upstream busy, from the rate at which requests end.
///
/// With `r` requests ending a second and `s` refused a second, the last second's refused work takes `s / r`
/// seconds: that is the advice, and at least the time until one ends. While none ends it grows with the silence.
#[derive(Clone, Debug)]
pub struct DrainAdvisor {
    bounds: RetryBounds,
    seen_at_s: Option<f64>,
    freed: FreeRate,
    refused: Rate,
}

// === impl DrainAdvisor ===

impl DrainAdvisor {
    /// Creates an advisor without observations.
    #[must_use]
    pub fn new(bounds: RetryBounds) -> Self {
        Self { bounds, seen_at_s: None, freed: FreeRate::default(), refused: Rate::default() }
    }

    /// Records the totals at `now`: requests that ended and that were refused, and requests in flight.
    pub fn observe(&mut self, now: Duration, ended: u64, refused: u64, held: u64) {
        let now_s = now.as_secs_f64();
        match self.seen_at_s {
            None => {
                self.freed = FreeRate::starting(now_s, ended);
                self.refused.observe(1.0, refused, true);
            }
            Some(last_s) if now_s <= last_s => return,
            Some(last_s) => {
                self.freed.observe(now_s, ended, held);
                self.refused.observe(now_s - last_s, refused, false);
            }
        }
        self.seen_at_s = Some(now_s);
    }

    /// Returns the mean wait before a retry for requests that are refused now.
    #[must_use]
    pub fn advise(&self) -> Duration {
        let now_s = self.seen_at_s.unwrap_or(0.0);
        let freed_per_s = self.freed.per_s(now_s);
        let wait_s = if freed_per_s > 0.0 {
            self.refused.per_s().max(1.0) / freed_per_s
        } else {
            (now_s - self.freed.last_at_s()).max(1.0)
        };
        let longest_s = self.bounds.max.as_secs_f64();
        Duration::from_secs_f64(wait_s.min(longest_s)).max(self.bounds.min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten looks a second for some seconds.
    fn run(advisor: &mut DrainAdvisor, from_s: u64, seconds: u64, ended: u64, refused: u64) -> f64 {
        for tick in 0..=seconds * 10 {
            let now = Duration::from_millis(from_s * 1000 + tick * 100);
            advisor.observe(now, ended * tick / 10, refused * tick / 10, 8);
        }
        advisor.advise().as_secs_f64()
    }

    #[test]
    fn the_wait_is_the_refused_work_over_the_drain_rate() {
        let mut advisor = DrainAdvisor::new(RetryBounds::default());
        let wait_s = run(&mut advisor, 0, 20, 50, 200);
        assert!((wait_s - 4.0).abs() < 0.3, "{wait_s}");
        let mut alone = DrainAdvisor::new(RetryBounds::default());
        let wait_s = run(&mut alone, 0, 20, 10, 0);
        assert!((wait_s - 0.1).abs() < 0.02, "{wait_s}");
    }

    #[test]
    fn the_wait_grows_while_nothing_ends_and_falls_with_the_first_end() {
        let mut advisor = DrainAdvisor::new(RetryBounds::default());
        let silent_s = run(&mut advisor, 0, 12, 0, 5);
        assert!(silent_s >= 11.0, "{silent_s}");
        advisor.observe(Duration::from_secs(13), 100, 60, 8);
        assert!(advisor.advise().as_secs_f64() < silent_s);
    }
}
