use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use tidegate_core::usage::Fallback;

/// Totals of a pipeline since its start.
#[derive(Debug, Default)]
pub struct PipelineCounters {
    pub(crate) bytes: AtomicU64,
    pub(crate) frames: AtomicU64,
    pub(crate) lines: AtomicU64,
    pub(crate) fields_skipped: AtomicU64,
    pub(crate) records: AtomicU64,
    pub(crate) records_stored: AtomicU64,
    pub(crate) batches_stored: AtomicU64,
    pub(crate) batches_repeated: AtomicU64,
    pub(crate) commits: AtomicU64,
    pub(crate) store_failures: AtomicU64,
    pub(crate) senders_superseded: AtomicU64,
    fallbacks: [AtomicU64; Fallback::ALL.len()],
    /// By a fixed set of words, all of them constants of this program.
    rejected: Mutex<BTreeMap<(&'static str, &'static str), u64>>,
}

/// Snapshot of [`PipelineCounters`].
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct PipelineCounts {
    /// Bytes taken from connections.
    pub bytes: u64,
    /// Frames cut out of them.
    pub frames: u64,
    /// Lines cut out of them.
    pub lines: u64,
    /// Fields of lines that are no number, and were passed over.
    pub fields_skipped: u64,
    /// Records made of frames and lines.
    pub records: u64,
    /// Records that are durable, each counted once.
    pub records_stored: u64,
    /// Batches that are durable.
    pub batches_stored: u64,
    /// Batches that came again, and did not count again.
    pub batches_repeated: u64,
    /// Number of commits to the store.
    pub commits: u64,
    /// Number of failed commits and reads.
    pub store_failures: u64,
    /// Connections that another one of the same sender took the place of.
    pub senders_superseded: u64,
    /// Records that no tariff fits, by reason.
    pub fallbacks: BTreeMap<&'static str, u64>,
    /// Rejections by protocol and reason.
    pub rejected: Vec<Rejected>,
}

/// Number of rejections for one reason.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Rejected {
    /// Protocol: `frames` or `lines`.
    pub protocol: &'static str,
    /// Reason.
    pub reason: &'static str,
    /// Number of rejections.
    pub count: u64,
}

// === impl PipelineCounters ===

impl PipelineCounters {
    /// Current values.
    #[must_use]
    pub fn counts(&self) -> PipelineCounts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let rejected = self.rejected.lock().unwrap_or_else(PoisonError::into_inner);
        PipelineCounts {
            bytes: of(&self.bytes),
            frames: of(&self.frames),
            lines: of(&self.lines),
            fields_skipped: of(&self.fields_skipped),
            records: of(&self.records),
            records_stored: of(&self.records_stored),
            batches_stored: of(&self.batches_stored),
            batches_repeated: of(&self.batches_repeated),
            commits: of(&self.commits),
            store_failures: of(&self.store_failures),
            senders_superseded: of(&self.senders_superseded),
            fallbacks: Fallback::ALL
                .iter()
                .map(|fallback| (fallback.name(), of(&self.fallbacks[index(*fallback)])))
                .collect(),
            rejected: rejected
                .iter()
                .map(|(&(protocol, reason), &count)| Rejected { protocol, reason, count })
                .collect(),
        }
    }

    pub(crate) fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn fell_back(&self, fallback: Fallback) {
        Self::add(&self.fallbacks[index(fallback)], 1);
    }

    pub(crate) fn reject(&self, protocol: &'static str, reason: &'static str) {
        let mut rejected = self.rejected.lock().unwrap_or_else(PoisonError::into_inner);
        *rejected.entry((protocol, reason)).or_default() += 1;
    }
}

fn index(fallback: Fallback) -> usize {
    usize::from(fallback.code() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_and_what_falls_back_is_told_by_reason() {
        let counters = PipelineCounters::default();
        counters.reject("lines", "no_fields");
        counters.reject("frames", "cbor");
        counters.reject("lines", "no_fields");
        counters.fell_back(Fallback::OutOfRange);
        let counts = counters.counts();
        let told: Vec<_> =
            counts.rejected.iter().map(|r| (r.protocol, r.reason, r.count)).collect();
        assert_eq!(told, [("frames", "cbor", 1), ("lines", "no_fields", 2)]);
        assert_eq!(counts.fallbacks["out_of_range"], 1);
        assert_eq!(counts.fallbacks["unknown_meter"], 0, "also what never happened is told");
    }
}
