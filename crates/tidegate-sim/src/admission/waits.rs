use super::report::WaitQuantiles;
use std::time::Duration;

/// How many were told to wait how long, to the millisecond. All memory is taken at the start.
#[derive(Debug)]
pub(crate) struct Waits {
    counts: Vec<u64>,
    total: u64,
}

// === impl Waits ===

impl Waits {
    pub(crate) fn up_to(longest: Duration) -> Self {
        let slots = usize::try_from(longest.as_millis()).expect("a wait of at most some days") + 1;
        Self { counts: vec![0; slots], total: 0 }
    }

    pub(crate) fn record(&mut self, wait: Duration) {
        let last = self.counts.len() - 1;
        let slot = usize::try_from(wait.as_millis()).map_or(last, |slot| slot.min(last));
        self.counts[slot] += 1;
        self.total += 1;
    }

    pub(crate) fn quantiles(&self) -> Option<WaitQuantiles> {
        (self.total > 0).then(|| WaitQuantiles {
            p50_ms: self.percentile(50),
            p99_ms: self.percentile(99),
            max_ms: self.percentile(100),
        })
    }

    /// The shortest wait that this share of all waits does not exceed.
    fn percentile(&self, percent: u64) -> u64 {
        let rank = (self.total * percent).div_ceil(100);
        let mut seen = 0;
        let slot = self.counts.iter().position(|&count| {
            seen += count;
            seen >= rank
        });
        slot.unwrap_or_default() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_waits_that_were_given() {
        let mut waits = Waits::up_to(Duration::from_secs(1));
        assert_eq!(waits.quantiles(), None);
        (1..=100).for_each(|ms| waits.record(Duration::from_millis(ms)));
        let expected = WaitQuantiles { p50_ms: 50, p99_ms: 99, max_ms: 100 };
        assert_eq!(waits.quantiles(), Some(expected));
    }
}
