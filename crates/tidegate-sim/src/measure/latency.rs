use hdrhistogram::Histogram;

/// Times in microseconds, to a thousandth of themselves.
#[derive(Clone, Debug)]
pub(super) struct Latencies {
    /// Made when the first comes: most groups of most phases have none.
    times: Option<Histogram<u32>>,
    sum_us: u64,
}

/// The longest latency that is distinguished: an hour.
const LONGEST_US: u64 = 3_600_000_000;

// === impl Latencies ===

impl Latencies {
    pub(super) const fn new() -> Self {
        Self { times: None, sum_us: 0 }
    }

    pub(super) fn record(&mut self, us: u64) {
        let us = us.clamp(1, LONGEST_US);
        self.sum_us += us;
        if self.times.is_none() {
            self.times = Histogram::new_with_bounds(1, LONGEST_US, 3).ok();
        }
        if let Some(times) = &mut self.times {
            times.saturating_record(us);
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.sum_us += other.sum_us;
        match (&mut self.times, &other.times) {
            (Some(times), Some(more)) => {
                // Both have the same bounds: nothing can be out of them.
                let _ = times.add(more);
            }
            (none @ None, Some(more)) => *none = Some(more.clone()),
            (_, None) => {}
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.times.as_ref().map_or(0, |times| times.len())
    }

    pub(super) fn mean_ms(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.sum_us as f64 / count as f64 / 1e3)
    }

    /// The time that this share of them did not exceed.
    pub(super) fn quantile_ms(&self, quantile: f64) -> Option<f64> {
        let times = self.times.as_ref().filter(|times| !times.is_empty())?;
        Some(times.value_at_quantile(quantile) as f64 / 1e3)
    }

    pub(super) fn max_ms(&self) -> Option<f64> {
        let times = self.times.as_ref().filter(|times| !times.is_empty())?;
        Some(times.max() as f64 / 1e3)
    }
}
