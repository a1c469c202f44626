use super::ControlPlane;
use crate::gateway::telemetry::MetricsSnapshot;
use crate::gateway::upstream::UpstreamStats;
use crate::http::RejectionReason;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use tidegate::admission::{Alert, Reason};
use tidegate::routing::ModelStats;
use tidegate::{LoadState, MessagePriority, PriorityLoadStats, Refusal};

/// The response of `GET /v1/stats`.
#[derive(Debug, Serialize)]
pub struct GatewayStats {
    /// The version of the program.
    pub version: &'static str,
    /// Since the start, in seconds.
    pub uptime_s: f64,
    /// `serving` or `draining`.
    pub phase: &'static str,
    /// The load state.
    pub load_state: LoadState,
    /// The active alerts.
    pub alerts: Vec<Alert>,
    /// Admission by priority.
    pub admission: PriorityLoadStats,
    /// Retry advice in milliseconds, by priority and limit.
    pub retry_after_ms: BTreeMap<&'static str, BTreeMap<&'static str, u128>>,
    /// Open client connections.
    pub connections: u64,
    /// Client connections refused at the connection limit.
    pub connections_refused: u64,
    /// True if the upstreams are the mocks of a demonstration.
    pub demo: bool,
    /// True in a dry run, where limits only count what they would refuse.
    pub dry_run: bool,
    /// Requests received for proxying.
    pub tasks: TaskStats,
    /// Models whose queue is in overflow or saturated.
    pub slow_models: usize,
    /// Each model: its thresholds, its queue, and how many of its upstreams are busy.
    pub models: Vec<ModelStats>,
    /// Each upstream: its limit and its load.
    pub upstreams: Vec<UpstreamStats>,
    /// Sections of the other parts of the node, by name.
    #[serde(flatten)]
    pub sections: BTreeMap<&'static str, Value>,
}

/// Requests received for proxying.
#[derive(Debug, Serialize)]
pub struct TaskStats {
    /// All of them.
    pub issued: u64,
    /// Refused, by reason.
    pub rejected: BTreeMap<&'static str, u64>,
    /// Requests that would have been refused outside of a dry run, by reason.
    pub would_reject: BTreeMap<&'static str, u64>,
    /// Admitted requests whose response has not begun.
    pub queued: u64,
}

// === impl TaskStats ===

impl TaskStats {
    fn of(metrics: &MetricsSnapshot) -> Self {
        let named = |counts: [u64; RejectionReason::ALL.len()]| {
            RejectionReason::ALL.into_iter().map(RejectionReason::name).zip(counts).collect()
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
    pub fn of(control: &ControlPlane) -> Self {
        let admission = control.admission.tracker().stats();
        Self {
            version: env!("CARGO_PKG_VERSION"),
            uptime_s: control.threads.started().elapsed().as_secs_f64(),
            phase: control.phase().name(),
            load_state: control.admission.tracker().load_state(),
            alerts: Alert::of(&admission, control.config.admission.warn_threshold).collect(),
            admission,
            retry_after_ms: retry_after(control),
            connections: control.threads.snapshot().connections,
            connections_refused: control.threads.connections_refused(),
            demo: control.node.demo,
            dry_run: control.config.dry_run,
            tasks: TaskStats::of(&control.threads.snapshot()),
            slow_models: control.slow.holding(),
            models: control.fleet.monitor().models(),
            upstreams: control.fleet.stats(),
            sections: control.node.extensions.iter().filter_map(|part| part.stats()).collect(),
        }
    }
}

fn retry_after(control: &ControlPlane) -> BTreeMap<&'static str, BTreeMap<&'static str, u128>> {
    let refusable = MessagePriority::ALL.into_iter().filter(|p| *p != MessagePriority::Critical);
    refusable
        .map(|priority| {
            let advice = |reason| {
                control.admission.retry_board().advice(Refusal { priority, reason }).as_millis()
            };
            (priority.name(), Reason::ALL.map(|reason| (reason.name(), advice(reason))).into())
        })
        .collect()
}
