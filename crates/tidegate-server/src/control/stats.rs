use crate::gateway::{Phase, Shared};
use crate::ingest::IngestStats;
use crate::proxy::Rejection;
use crate::telemetry::MetricsSnapshot;
use crate::upstream::UpstreamStats;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use tidegate::admission::{Alert, Reason};
use tidegate::routing::ModelStats;
use tidegate::{LoadState, MessagePriority, PriorityLoadStats, Refusal};

/// Everything that `GET /v1/stats` tells.
#[derive(Debug, Serialize)]
pub struct GatewayStats {
    /// The version of the program.
    pub version: &'static str,
    /// Since the start, in seconds.
    pub uptime_s: f64,
    /// `serving` or `draining`.
    pub phase: &'static str,
    /// How loaded it is.
    pub load_state: LoadState,
    /// The alerts that hold now.
    pub alerts: Vec<Alert>,
    /// Admission by priority.
    pub admission: PriorityLoadStats,
    /// What a client that is refused now is told to wait, by priority and by the limit that refuses.
    pub retry_after_ms: BTreeMap<&'static str, BTreeMap<&'static str, u128>>,
    /// Open client connections.
    pub connections: u64,
    /// Client connections turned away at the connection limit.
    pub connections_refused: u64,
    /// Whether the upstreams are the embedded demonstration.
    pub demo: bool,
    /// Whether limits only count what they would refuse.
    pub dry_run: bool,
    /// Requests that came to be proxied, and what became of them.
    pub tasks: TaskStats,
    /// Destinations in overflow or saturated.
    pub slow_destinations: usize,
    /// Each model: its thresholds, and how many of its workers are busy.
    pub models: Vec<ModelStats>,
    /// Each upstream: its outbox and its load.
    pub upstreams: Vec<UpstreamStats>,
    /// The ingestion of usage records, when there is one.
    pub ingest: Option<IngestStats>,
}

/// Requests that came to be proxied.
#[derive(Debug, Serialize)]
pub struct TaskStats {
    /// All of them.
    pub issued: u64,
    /// Refused, by reason.
    pub rejected: BTreeMap<&'static str, u64>,
    /// What would have been refused if it were not a dry run, by reason.
    pub would_reject: BTreeMap<&'static str, u64>,
    /// Admitted, and the answer has not begun.
    pub queued: u64,
}

// === impl TaskStats ===

impl TaskStats {
    fn of(metrics: &MetricsSnapshot) -> Self {
        let named = |counts: [u64; Rejection::ALL.len()]| {
            Rejection::ALL.into_iter().map(Rejection::name).zip(counts).collect()
        };
        Self {
            issued: metrics.issued,
            rejected: named(metrics.rejected),
            would_reject: named(metrics.would_reject),
            queued: metrics.queued,
        }
    }
}

// === impl GatewayStats ===

impl GatewayStats {
    /// A snapshot of a running gateway.
    #[must_use]
    pub fn of(shared: &Shared) -> Self {
        let admission = shared.tracker.stats();
        Self {
            version: env!("CARGO_PKG_VERSION"),
            uptime_s: shared.started.elapsed().as_secs_f64(),
            phase: match shared.phase() {
                Phase::Serving => "serving",
                Phase::Draining => "draining",
            },
            load_state: shared.tracker.load_state(),
            alerts: Alert::of(&admission, shared.config.admission.warn_threshold).collect(),
            admission,
            retry_after_ms: retry_after(shared),
            connections: shared.metrics().connections,
            connections_refused: shared.connections_refused.load(Ordering::Relaxed),
            demo: shared.demo,
            dry_run: shared.config.dry_run,
            tasks: TaskStats::of(&shared.metrics()),
            slow_destinations: shared.slow.holding(),
            models: shared.fleet.monitor().models(),
            upstreams: shared.fleet.stats(),
            ingest: shared.ingest.as_ref().map(|ingest| ingest.stats()),
        }
    }
}

fn retry_after(shared: &Shared) -> BTreeMap<&'static str, BTreeMap<&'static str, u128>> {
    let refusable = MessagePriority::ALL.into_iter().filter(|p| *p != MessagePriority::Critical);
    refusable
        .map(|priority| {
            let advice = |reason| shared.board.advice(Refusal { priority, reason }).as_millis();
            (priority.name(), Reason::ALL.map(|reason| (reason.name(), advice(reason))).into())
        })
        .collect()
}
