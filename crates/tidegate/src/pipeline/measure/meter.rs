use hdrhistogram::Histogram;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidegate_core::window::LATENCY_SAMPLES_MIN;
use tokio::time::Instant;

/// The longest time that is told apart: what takes longer is a stall, and is told as one.
const LONGEST_NS: u64 = 60_000_000_000;

/// Upper bounds of the buckets of service times, in nanoseconds: three per decade from 1 µs to 1 s, then to 600 s.
pub const SERVICE_BOUNDS_NS: [u64; 22] = [
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    10_000_000_000,
    60_000_000_000,
    600_000_000_000,
];

/// Service times of a stage since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceHistogram {
    /// Items in each bucket of [`SERVICE_BOUNDS_NS`], not cumulative; the last has no upper bound.
    pub buckets: [u64; SERVICE_BOUNDS_NS.len() + 1],
    /// The sum of all service times, in nanoseconds.
    pub sum_ns: u64,
}

/// Meter of the service times of a stage.
#[derive(Debug)]
pub(crate) struct StageMeter {
    /// None only if the constants below were out of range.
    histogram: Mutex<Option<Histogram<u64>>>,
    longest_ns: AtomicU64,
    waited_ns: AtomicU64,
    total: Mutex<ServiceHistogram>,
}

/// Service times of a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServiceTimes {
    /// Half of the items took at most this long.
    pub p50_ns: u64,
    /// All but one in a hundred took at most this long.
    pub p99_ns: u64,
    /// Number of items.
    pub items: u64,
}

// === impl StageMeter ===

impl StageMeter {
    pub(crate) fn new() -> Self {
        // Two digits: one in a hundred, where "twice the baseline" is asked.
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, 2).ok();
        let [longest_ns, waited_ns] = [(); 2].map(|()| AtomicU64::new(0));
        Self { histogram: Mutex::new(histogram), longest_ns, waited_ns, total: Mutex::default() }
    }

    /// Some items took this long together.
    pub(crate) fn record(&self, items: u64, took: Duration) {
        if items == 0 {
            return;
        }
        let took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.longest_ns.fetch_max(took_ns, Ordering::Relaxed);
        let each_ns = took_ns / items;
        {
            let mut total = self.total.lock().unwrap_or_else(PoisonError::into_inner);
            let bucket = SERVICE_BOUNDS_NS.partition_point(|bound_ns| *bound_ns < each_ns);
            total.buckets[bucket] += items;
            total.sum_ns = total.sum_ns.saturating_add(took_ns);
        }
        if let Some(histogram) = &mut *self.lock() {
            histogram.saturating_record_n(each_ns.max(1), items);
        }
    }

    /// Runs what sends to the stage, and notes how long it waited for room.
    pub(crate) async fn waiting<T>(&self, send: impl Future<Output = T>) -> T {
        let started = Instant::now();
        let sent = send.await;
        let waited_ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.waited_ns.fetch_add(waited_ns, Ordering::Relaxed);
        sent
    }

    /// Time that senders to the stage waited for room since the last call.
    pub(crate) fn take_waited_ns(&self) -> u64 {
        self.waited_ns.swap(0, Ordering::Relaxed)
    }

    /// The longest that items were worked on together, since the last time.
    pub(crate) fn take_longest_ns(&self) -> u64 {
        self.longest_ns.swap(0, Ordering::Relaxed)
    }

    /// Service times since the start.
    pub(crate) fn total(&self) -> ServiceHistogram {
        self.total.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes the recorded times once there are enough for a percentile; `None` before.
    pub(crate) fn take(&self) -> Option<ServiceTimes> {
        let mut locked = self.lock();
        let histogram = locked.as_mut()?;
        if histogram.len() < LATENCY_SAMPLES_MIN {
            return None;
        }
        let times = ServiceTimes {
            p50_ns: histogram.value_at_quantile(0.5),
            p99_ns: histogram.value_at_quantile(0.99),
            items: histogram.len(),
        };
        histogram.reset();
        Some(times)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Histogram<u64>>> {
        self.histogram.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_took_long_together_took_a_part_of_it_each() {
        let meter = StageMeter::new();
        meter.record(990, Duration::from_micros(990));
        meter.record(10, Duration::from_millis(10));
        meter.record(0, Duration::from_secs(9));
        assert_eq!((meter.take_longest_ns(), meter.take_longest_ns()), (10_000_000, 0));
        let times = meter.take().unwrap();
        assert_eq!(times.items, 1_000);
        let total = meter.total();
        assert_eq!((total.buckets[0], total.buckets[9], total.sum_ns), (990, 10, 10_990_000));
        assert!((990..1_010).contains(&times.p50_ns), "{times:?}");
        assert!((990..1_010).contains(&times.p99_ns), "{times:?}");
        assert_eq!(meter.take(), None, "each time is told once");
    }

    #[test]
    fn what_takes_longest_does_not_break_it() {
        let meter = StageMeter::new();
        meter.record(500, Duration::MAX);
        assert_eq!(meter.take(), None, "half of what a percentile needs");
        meter.record(500, Duration::ZERO);
        assert!(meter.take().unwrap().p99_ns >= LONGEST_NS / 2);
    }
}
