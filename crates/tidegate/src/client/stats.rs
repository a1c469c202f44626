use super::error::Trouble;
use hdrhistogram::Histogram;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::frame::RejectReason;
use tidegate_core::signal::BackpressureSignal;

/// Counts of a client: records it buffers, and totals since it started.
#[derive(Clone, Debug, Default)]
pub struct ClientStats {
    /// Records that were taken from callers.
    pub records_taken: u64,
    /// Of these, those that are durable at the server.
    pub records_acked: u64,
    /// Those that were durable before this client came, and were not sent: only with
    /// [`Numbering::FromOne`](super::Numbering::FromOne).
    pub records_known: u64,
    /// Those that will not be sent again and are not durable: refused for good, or spared.
    pub records_rejected: u64,
    /// Those that are held until they are durable.
    pub records_held: u64,
    /// The same in bytes, as they are on the wire.
    pub bytes_held: u64,
    /// Records in batches that were sent again, each time counted.
    pub records_resent: u64,
    /// Batches that were sent, each time counted.
    pub batches_sent: u64,
    /// Batches that are sent and not answered.
    pub batches_in_flight: usize,
    /// Bytes of batches that were sent.
    pub bytes_sent: u64,
    /// Answers that a batch was not taken, by reason, also when it was taken later.
    pub rejects: RejectCounts,
    /// Rejected batches that nobody was told of, because [`Rejections`](super::Rejections) was full or gone.
    pub rejections_lost: u64,
    /// Connections over which the server was reached.
    pub connections: u64,
    /// Connections that broke, or could not be made.
    pub troubles: u64,
    /// The last connection failure.
    pub last_trouble: Option<Arc<Trouble>>,
    /// True while the client is connected.
    pub connected: bool,
    /// The current signal of the server.
    pub signal: BackpressureSignal,
    /// From when a batch's oldest record was taken until the batch was acknowledged, each record counted.
    pub latency: LatencyStats,
}

/// Number of rejections by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RejectCounts([u64; RejectReason::ALL.len()]);

/// Percentiles of a duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatencyStats {
    /// Half took at most this.
    pub p50: Duration,
    /// 99 of 100 took at most this.
    pub p99: Duration,
    /// The longest.
    pub max: Duration,
}

/// Histogram of batch latency, in microseconds up to an hour.
#[derive(Debug)]
pub(super) struct Latencies {
    histogram: Option<Histogram<u64>>,
}

// === impl RejectCounts ===

impl RejectCounts {
    /// Number of rejections for this reason.
    #[must_use]
    pub fn of(&self, reason: RejectReason) -> u64 {
        self.0[reason.index()]
    }

    /// Number of rejections for any reason.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The reasons that were given.
    pub fn iter(&self) -> impl Iterator<Item = (RejectReason, u64)> {
        RejectReason::ALL.into_iter().zip(self.0).filter(|(_, count)| *count > 0)
    }

    pub(super) fn add(&mut self, reason: RejectReason) {
        self.0[reason.index()] += 1;
    }
}

// === impl Latencies ===

impl Latencies {
    pub(super) fn new() -> Self {
        const HOUR_US: u64 = 3_600_000_000;
        // It refuses only bounds that make no sense, and these do.
        Self { histogram: Histogram::new_with_bounds(1, HOUR_US, 3).ok() }
    }

    pub(super) fn record(&mut self, latency: Duration, records: u32) {
        let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        if let Some(histogram) = &mut self.histogram {
            histogram.saturating_record_n(micros, records.into());
        }
    }

    pub(super) fn stats(&self) -> LatencyStats {
        let at = |quantile| {
            let histogram = self.histogram.as_ref();
            Duration::from_micros(histogram.map_or(0, |all| all.value_at_quantile(quantile)))
        };
        LatencyStats { p50: at(0.50), p99: at(0.99), max: at(1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_those_of_records_not_of_batches() {
        let mut latencies = Latencies::new();
        assert_eq!(latencies.stats(), LatencyStats::default());
        latencies.record(Duration::from_millis(10), 990);
        latencies.record(Duration::from_millis(900), 10);
        latencies.record(Duration::from_secs(90_000), 1);
        let stats = latencies.stats();
        let ms = |latency: Duration| latency.as_millis();
        assert_eq!((ms(stats.p50), ms(stats.p99)), (10, 900));
        assert!(stats.max >= Duration::from_secs(3_600), "{:?}", stats.max);
    }
}
