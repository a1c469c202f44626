use std::time::Duration;

/// The weight of one more task in the mean. About the last thirty count.
const WEIGHT: f64 = 1.0 / 30.0;

/// How long those who wait will have to, by how long tasks have held their slots.
///
/// With `s` slots and tasks that hold them for `t` on average, a slot frees every `t / s`; whoever has `n` before
/// it waits for the slots that are free to be gone and for `n + 1` minus as many to free.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WaitEstimate {
    held_s: Option<f64>,
}

// === impl WaitEstimate ===

impl WaitEstimate {
    /// A task has held its slot for so long.
    pub fn saw(&mut self, held: Duration) {
        let sample_s = held.as_secs_f64();
        self.held_s = Some(match self.held_s {
            Some(old_s) => old_s + WEIGHT * (sample_s - old_s),
            None => sample_s,
        });
    }

    /// How long tasks hold their slots, on average; `None` before one has ended.
    #[must_use]
    pub fn held(&self) -> Option<Duration> {
        self.held_s.map(Duration::from_secs_f64)
    }

    /// How much longer one waits who has so many before it. `None` when nobody can know: no slot is there, or none
    /// has freed yet.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate_core::capacity::WaitEstimate;
    ///
    /// let mut estimate = WaitEstimate::default();
    /// assert_eq!(estimate.wait(5, 4, 0), None);
    /// estimate.saw(Duration::from_secs(2));
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
        let wait_s = self.held_s? * frees as f64 / f64::from(slots);
        Duration::try_from_secs_f64(wait_s).ok()
    }
}
