use super::exposition::Exposition;
use super::routing_metrics;
use crate::gateway::Shared;
use crate::ingest::write_metrics;
use crate::manager::write_metrics as write_task_metrics;
use crate::proxy::Rejection;
use crate::rescue::FAILURE_REASONS;
use crate::telemetry::{BOUNDS_S, HistogramSnapshot, MetricsSnapshot, STATUS_CLASSES};
use crate::upstream::UpstreamStats;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};
use tidegate::admission::{Alert, Reason, ReasonTotals};
use tidegate::outbox::DestinationSlow;
use tidegate::{LoadState, MessagePriority, Outcome, PriorityLoadStats, Refusal};

/// All series of the gateway. Every label has a fixed set of values, or one a configured client or upstream, its
/// ranks and its models, which are bounded.
#[must_use]
pub fn render(shared: &Shared) -> String {
    let mut out = Exposition::default();
    admission(&mut out, &shared.tracker.stats());
    load(&mut out, shared);
    requests(&mut out, &shared.metrics());
    connections(&mut out, shared);
    let stats = shared.fleet.stats();
    upstreams(&mut out, &stats);
    tasks(&mut out, shared);
    clients(&mut out, shared);
    routing_metrics::outboxes(&mut out, shared, &stats);
    routing_metrics::models(&mut out, &shared.fleet.monitor().models());
    routing_metrics::workers(&mut out, &stats);
    if let Some(ingest) = &shared.ingest {
        write_metrics(&mut out, &ingest.stats());
    }
    if let Some(meters) = &shared.task_meters {
        write_task_metrics(&mut out, meters);
    }
    write_process(&mut out, shared.started_at);
    out.finish()
}

fn admission(out: &mut Exposition, stats: &PriorityLoadStats) {
    let mut in_flight = out.gauge("tidegate_in_flight", "Admitted and not yet ended, by priority.");
    for priority in MessagePriority::ALL {
        in_flight.with(&[("priority", priority.name())], stats.in_flight(priority));
    }
    let mut acquired = out.counter("tidegate_acquired_total", "Admitted, by priority.");
    for priority in MessagePriority::ALL {
        acquired.with(&[("priority", priority.name())], stats.acquired(priority));
    }
    let mut shed =
        out.counter("tidegate_shed_total", "Refused, by priority and by the limit that refused.");
    for priority in MessagePriority::ALL {
        for reason in Reason::ALL {
            let labels = [("priority", priority.name()), ("reason", reason.name())];
            shed.with(&labels, stats.shed_by_reason[priority.index()].of(reason));
        }
    }
    out.counter(
        "tidegate_critical_shed_total",
        "Critical messages refused. Stays 0; anything else is a defect.",
    )
    .value(stats.critical_shed);
    let mut finished =
        out.counter("tidegate_finished_total", "Ended permits, by priority and outcome.");
    for priority in MessagePriority::ALL {
        for outcome in Outcome::ALL {
            let labels = [("priority", priority.name()), ("outcome", outcome.name())];
            finished.with(&labels, stats.finished[priority.index()].of(outcome));
        }
    }
    let mut limits =
        out.gauge("tidegate_priority_limit", "Places of a priority; for critical, its reserve.");
    limits.with(&[("priority", "critical")], stats.critical_reserve);
    limits.with(&[("priority", "high")], stats.high_limit);
    limits.with(&[("priority", "normal")], stats.normal_limit);
    limits.with(&[("priority", "low")], stats.low_limit);
    out.gauge("tidegate_global_limit", "Places of all priorities together.")
        .value(stats.global_limit);
}

fn load(out: &mut Exposition, shared: &Shared) {
    let now = shared.tracker.load_state();
    let mut states =
        out.gauge("tidegate_load_state", "1 for the state that holds, 0 for the others.");
    for state in LoadState::ALL {
        states.with(&[("state", state.name())], u8::from(state == now));
    }
    let mut holding = out.gauge("tidegate_alert", "1 while an alert holds.");
    for (name, holds) in Alert::NAMES.iter().zip(shared.alerts.holding()) {
        holding.with(&[("alert", name)], u8::from(holds));
    }
    let slow = shared.slow.holding() > 0;
    holding.with(&[("alert", DestinationSlow::NAME)], u8::from(slow));
    let mut raised =
        out.counter("tidegate_alerts_raised_total", "How often an alert began to hold.");
    for (name, count) in Alert::NAMES.iter().zip(shared.alerts.raised()) {
        raised.with(&[("alert", name)], count);
    }
    raised.with(&[("alert", DestinationSlow::NAME)], shared.slow.raised());
    let mut advice = out.gauge(
        "tidegate_retry_after_seconds",
        "What a client that is refused now is told to wait.",
    );
    for priority in MessagePriority::ALL.into_iter().filter(|p| *p != MessagePriority::Critical) {
        for reason in Reason::ALL {
            let wait = shared.board.advice(Refusal { priority, reason });
            let labels = [("priority", priority.name()), ("reason", reason.name())];
            advice.with(&labels, wait.as_secs_f64());
        }
    }
}

fn requests(out: &mut Exposition, metrics: &MetricsSnapshot) {
    let mut answers =
        out.counter("tidegate_responses_total", "Upstreams' answers passed on, by status class.");
    for (class, count) in STATUS_CLASSES.iter().zip(metrics.answers) {
        answers.with(&[("class", class)], count);
    }
    let mut failures = out.counter(
        "tidegate_failures_total",
        "Admitted requests that got no answer from an upstream, by reason.",
    );
    for (reason, count) in FAILURE_REASONS.iter().zip(metrics.failures) {
        failures.with(&[("reason", reason)], count);
    }
    let mut durations = out.histogram(
        "tidegate_request_duration_seconds",
        "From an admitted request's head to the end of its answer, by priority.",
    );
    for priority in MessagePriority::ALL {
        let snapshot = &metrics.durations[priority.index()];
        histogram(&mut durations, priority.name(), snapshot);
    }
}

fn histogram(
    series: &mut super::exposition::Series<'_>,
    priority: &str,
    snapshot: &HistogramSnapshot,
) {
    let mut below = 0;
    for (bound, count) in BOUNDS_S.iter().zip(snapshot.buckets) {
        below += count;
        series.suffixed("_bucket", &[("priority", priority), ("le", &bound.to_string())], below);
    }
    series.suffixed("_bucket", &[("priority", priority), ("le", "+Inf")], snapshot.count());
    series.suffixed("_sum", &[("priority", priority)], snapshot.sum_ns as f64 / 1e9);
    series.suffixed("_count", &[("priority", priority)], snapshot.count());
}

fn tasks(out: &mut Exposition, shared: &Shared) {
    let metrics = shared.metrics();
    out.counter("tidegate_tasks_issued_total", "Requests that came to be proxied.")
        .value(metrics.issued);
    let mut rejected =
        out.counter("tidegate_tasks_rejected_total", "Of these, refused by a limit, by reason.");
    for (rejection, count) in Rejection::ALL.into_iter().zip(metrics.rejected) {
        rejected.with(&[("reason", rejection.name())], count);
    }
    let mut would = out.counter(
        "tidegate_tasks_would_reject_total",
        "What a limit would have refused if it were not a dry run, by reason.",
    );
    for (rejection, count) in Rejection::ALL.into_iter().zip(metrics.would_reject) {
        would.with(&[("reason", rejection.name())], count);
    }
    out.gauge("tidegate_queued_requests", "Admitted requests whose answer has not begun.")
        .value(metrics.queued);
    out.gauge("tidegate_dry_run", "1 while limits only count what they would refuse.")
        .value(u8::from(shared.config.dry_run));
}

fn clients(out: &mut Exposition, shared: &Shared) {
    let shares: Vec<_> =
        shared.gatekeeper.shares().map(|share| (share.client(), share.stats())).collect();
    if shares.is_empty() {
        return;
    }
    let mut in_flight =
        out.gauge("tidegate_client_in_flight", "Requests of a client that has a share, now.");
    for (client, stats) in &shares {
        in_flight.with(&[("client", client)], stats.total_in_flight);
    }
    let mut refused = out.counter(
        "tidegate_client_share_refused_total",
        "Requests that found their client's share taken; only counted in a dry run.",
    );
    for (client, stats) in &shares {
        let count: u64 = stats.shed_by_reason.iter().map(ReasonTotals::total).sum();
        refused.with(&[("client", client)], count);
    }
}

fn connections(out: &mut Exposition, shared: &Shared) {
    let metrics = shared.metrics();
    out.gauge("tidegate_connections", "Open client connections.").value(metrics.connections);
    out.counter("tidegate_connections_total", "Client connections accepted.")
        .value(metrics.connections_total);
    out.counter(
        "tidegate_connections_refused_total",
        "Client connections turned away at the connection limit.",
    )
    .value(shared.connections_refused.load(Ordering::Relaxed));
}

fn upstreams(out: &mut Exposition, stats: &[UpstreamStats]) {
    let mut up =
        out.gauge("tidegate_upstream_up", "1 while connections to an upstream can be made.");
    for upstream in stats {
        up.with(&[("upstream", &upstream.name)], u8::from(upstream.up));
    }
    let mut in_flight = out.gauge("tidegate_upstream_in_flight", "Requests with an upstream now.");
    for upstream in stats {
        in_flight.with(&[("upstream", &upstream.name)], upstream.in_flight);
    }
    let mut sent = out.counter("tidegate_upstream_requests_total", "Requests sent to an upstream.");
    for upstream in stats {
        sent.with(&[("upstream", &upstream.name)], upstream.sent);
    }
    let mut failed =
        out.counter("tidegate_upstream_failures_total", "Requests to an upstream that failed.");
    for upstream in stats {
        failed.with(&[("upstream", &upstream.name)], upstream.failed);
    }
}

/// What is told of the process itself.
pub fn write_process(out: &mut Exposition, started: SystemTime) {
    out.gauge("tidegate_build_info", "1, with the version as a label.")
        .with(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    let started = started.duration_since(UNIX_EPOCH).unwrap_or_default();
    out.gauge("process_start_time_seconds", "When the process started, since 1970.")
        .value(started.as_secs_f64());
    if let Some(bytes) = resident_bytes() {
        out.gauge("process_resident_memory_bytes", "Memory that the process holds.").value(bytes);
    }
}

/// From the kernel, where there is one that tells.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
