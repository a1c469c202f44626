use std::time::Duration;

/// Weight of one more task in the mean: about the last 30 tasks count.
const WEIGHT: f64 = 1.0 / 30.0;

/// Estimate of queue wait, from the mean time that tasks hold a slot.
///
/// With `s` slots held for `t` on average, one frees every `t / s`. An attempt with `n` before it waits for `n +
/// 1` slots minus those that are free now.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WaitEstimate {
    hold_s: Option<f64>,
}

// === impl WaitEstimate ===

impl WaitEstimate {
    /// Records the time that a task held its slot.
    pub fn record(&mut self, hold: Duration) {
        let sample_s = hold.as_secs_f64();
        self.hold_s = Some(match self.hold_s {
            Some(old_s) => old_s + WEIGHT * (sample_s - old_s),
            None => sample_s,
        });
    }

    /// Remaining wait of an attempt with `ahead` others before it. `None` if unknown: there is no slot, or none
    /// has freed yet.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate_core::capacity::WaitEstimate;
    ///
    /// let mut estimate = WaitEstimate::default();
    /// assert_eq!(estimate.wait(5, 4, 0), None);
    /// estimate.record(Duration::from_secs(2));
    /// assert_eq!(estimate.wait(5, 4, 0), Some(Duration::from_secs(3)));
    /// assert_eq!(estimate.wait(0, 4, 1), Some(Duration::ZERO));
    /// ```
    #[must_use]
    pub fn wait(&self, ahead: u64, slots: u32, free: u32) -> Option<Duration> {
        if slots == 0 {
            return None;
        }
        let frees = (ahead + 1).saturating_sub(u64::from(free));
        if frees == 0 {
            return Some(Duration::ZERO);
        }
        let wait_s = self.hold_s? * frees as f64 / f64::from(slots);
        Duration::try_from_secs_f64(wait_s).ok()
    }
}
