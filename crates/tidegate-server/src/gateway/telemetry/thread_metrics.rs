use crate::http::{Histogram, HistogramSnapshot, RejectionReason};
use http::StatusCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tidegate::MessagePriority;

/// Names of the status classes, by the first digit.
pub const STATUS_CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// Reasons of failures of admitted requests, as metrics and responses name them.
pub const FAILURE_REASONS: [&str; 14] = [
    "unknown_upstream",
    "loop",
    "connect_method",
    "bad_host",
    "bad_target",
    "no_upstream",
    "connect_failed",
    "connect_timeout",
    "upstream_reset",
    "response_timeout",
    "bad_answer",
    "transfer_coding",
    "upload_stalled",
    "upload_broken",
];

/// The counters of one io thread. Each thread has its own, and a scrape adds them up, so that
/// counting never makes threads wait for each other.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct ThreadMetrics {
    answers: [AtomicU64; 5],
    failures: [AtomicU64; FAILURE_REASONS.len()],
    issued: AtomicU64,
    rejected: [AtomicU64; RejectionReason::ALL.len()],
    would_reject: [AtomicU64; RejectionReason::ALL.len()],
    queued: AtomicU64,
    durations: [Histogram; 4],
    connections: AtomicU64,
    connections_total: AtomicU64,
}

/// An admitted request whose answer has not begun.
#[derive(Debug)]
pub struct Queued {
    metrics: Arc<ThreadMetrics>,
}

/// The sum over all threads.
#[derive(Clone, Debug, Default)]
pub struct MetricsSnapshot {
    /// Upstreams' answers passed on, by status class.
    pub answers: [u64; 5],
    /// Requests that got no answer from an upstream, by reason.
    pub failures: [u64; FAILURE_REASONS.len()],
    /// Requests received for proxying.
    pub issued: u64,
    /// Refused requests, by reason.
    pub rejected: [u64; RejectionReason::ALL.len()],
    /// Requests that would have been refused outside of a dry run, by reason.
    pub would_reject: [u64; RejectionReason::ALL.len()],
    /// Admitted requests whose answer has not begun.
    pub queued: u64,
    /// From head to the end of the answer, by priority.
    pub durations: [HistogramSnapshot; 4],
    /// Open client connections.
    pub connections: u64,
    /// Client connections since the start.
    pub connections_total: u64,
}

// === impl ThreadMetrics ===

impl ThreadMetrics {
    /// Counts an upstream's answer.
    pub fn answered(&self, priority: MessagePriority, status: StatusCode, duration: Duration) {
        let class = usize::from(status.as_u16() / 100).saturating_sub(1).min(4);
        self.answers[class].fetch_add(1, Ordering::Relaxed);
        self.durations[priority.index()].record(duration);
    }

    /// Counts a request that got no answer from an upstream.
    pub fn failed(&self, reason: &str, priority: MessagePriority, duration: Duration) {
        if let Some(index) = FAILURE_REASONS.iter().position(|name| *name == reason) {
            self.failures[index].fetch_add(1, Ordering::Relaxed);
        }
        self.durations[priority.index()].record(duration);
    }

    /// Counts a request that came to be proxied.
    pub fn issued(&self) {
        self.issued.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a refusal.
    pub fn rejected(&self, reason: RejectionReason) {
        self.rejected[reason.index()].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts what would have been a refusal.
    pub fn would_reject(&self, reason: RejectionReason) {
        self.would_reject[reason.index()].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request whose answer has not begun, until it is dropped.
    pub fn queue(self: &Arc<Self>) -> Queued {
        self.queued.fetch_add(1, Ordering::Relaxed);
        Queued { metrics: Arc::clone(self) }
    }

    /// Counts a connection that opens.
    pub fn connected(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
        self.connections_total.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a connection that closes.
    pub fn disconnected(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    /// Open connections of this thread.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Adds this thread's counts to a snapshot.
    pub fn add_to(&self, snapshot: &mut MetricsSnapshot) {
        add(&mut snapshot.answers, &self.answers);
        add(&mut snapshot.failures, &self.failures);
        for (total, histogram) in snapshot.durations.iter_mut().zip(&self.durations) {
            histogram.add_to(total);
        }
        snapshot.issued += self.issued.load(Ordering::Relaxed);
        add(&mut snapshot.rejected, &self.rejected);
        add(&mut snapshot.would_reject, &self.would_reject);
        snapshot.queued += self.queued.load(Ordering::Relaxed);
        snapshot.connections += self.connections();
        snapshot.connections_total += self.connections_total.load(Ordering::Relaxed);
    }
}

// === impl Queued ===

impl Drop for Queued {
    fn drop(&mut self) {
        self.metrics.queued.fetch_sub(1, Ordering::Relaxed);
    }
}

fn add(totals: &mut [u64], counters: &[AtomicU64]) {
    for (total, counter) in totals.iter_mut().zip(counters) {
        *total += counter.load(Ordering::Relaxed);
    }
}
