use super::Series;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the buckets in seconds: three per decade, from 0.5 ms to 600 s, which long generations reach.
pub const BOUNDS_S: [f64; 19] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    60.0, 120.0, 300.0, 600.0,
];

/// Counts of durations in fixed buckets.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [AtomicU64; BOUNDS_S.len() + 1],
    sum_ns: AtomicU64,
}

/// A histogram at one moment, as sums over threads.
#[derive(Clone, Debug, Default)]
pub struct HistogramSnapshot {
    /// Durations in each bucket, not cumulative; the last has no upper bound.
    pub buckets: [u64; BOUNDS_S.len() + 1],
    /// The sum of all durations, in nanoseconds.
    pub sum_ns: u64,
}

// === impl Histogram ===

impl Histogram {
    /// Counts one duration.
    pub fn record(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let bucket = BOUNDS_S.partition_point(|bound| *bound < seconds);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.sum_ns.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Adds what was counted so far to a snapshot.
    pub fn add_to(&self, snapshot: &mut HistogramSnapshot) {
        for (total, bucket) in snapshot.buckets.iter_mut().zip(&self.buckets) {
            *total += bucket.load(Ordering::Relaxed);
        }
        snapshot.sum_ns = snapshot.sum_ns.wrapping_add(self.sum_ns.load(Ordering::Relaxed));
    }
}

// === impl HistogramSnapshot ===

impl HistogramSnapshot {
    /// Number of durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Writes the series of this histogram with these labels.
    pub fn write(&self, series: &mut Series<'_>, labels: &[(&str, &str)]) {
        series.distribution(labels, &BOUNDS_S, &self.buckets, self.sum_ns as f64 / 1e9);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_falls_in_the_bucket_whose_bound_it_does_not_exceed() {
        let histogram = Histogram::default();
        for millis in [0, 1, 2, 600_000, 600_001] {
            histogram.record(Duration::from_millis(millis));
        }
        let mut snapshot = HistogramSnapshot::default();
        histogram.add_to(&mut snapshot);
        assert_eq!(snapshot.buckets[0..3], [1, 1, 1]);
        assert_eq!(snapshot.buckets[18..], [1, 1]);
        assert_eq!((snapshot.count(), snapshot.sum_ns), (5, 1_200_004_000_000));
    }
}
