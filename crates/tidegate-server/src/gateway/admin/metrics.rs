use super::{ControlPlane, routing_metrics};
use crate::gateway::telemetry::{FAILURE_REASONS, MetricsSnapshot, STATUS_CLASSES};
use crate::gateway::upstream::UpstreamStats;
use crate::http::tls::write_tls;
use crate::http::{Exposition, RejectionReason, write_process};
use tidegate::admission::{Alert, Reason, ReasonTotals};
use tidegate::outbox::DestinationSlow;
use tidegate::{LoadState, MessagePriority, Outcome, PriorityLoadStats, Refusal};

/// All series of the gateway. Every label has a fixed set of values, or one a configured client or upstream, its
/// ranks and its models, which are bounded.
#[must_use]
pub fn render(control: &ControlPlane) -> String {
    let mut out = Exposition::default();
    admission(&mut out, &control.admission.tracker().stats());
    load(&mut out, control);
    requests(&mut out, &control.threads.snapshot());
    connections(&mut out, control);
    let stats = control.fleet.stats();
    upstreams(&mut out, &stats);
    tasks(&mut out, control);
    clients(&mut out, control);
    let models = control.fleet.monitor().models();
    routing_metrics::queues(&mut out, &control.slow, &models);
    routing_metrics::models(&mut out, &models);
    routing_metrics::limits(&mut out, &stats);
    routing_metrics::upstreams(&mut out, &stats);
    for part in &control.node.extensions {
        part.write_metrics(&mut out);
    }
    write_tls(&mut out, &control.node.tls);
    write_process(&mut out, control.threads.started_at());
    out.finish()
}

fn admission(out: &mut Exposition, stats: &PriorityLoadStats) {
    let mut in_flight = out.gauge("tidegate_in_flight", "Requests in flight, by priority.");
    for priority in MessagePriority::ALL {
        in_flight.with(&[("priority", priority.name())], stats.in_flight(priority));
    }
    let mut acquired = out.counter("tidegate_acquired_total", "Admitted requests, by priority.");
    for priority in MessagePriority::ALL {
        acquired.with(&[("priority", priority.name())], stats.acquired(priority));
    }
    let mut shed = out.counter("tidegate_shed_total", "Refused requests, by priority and limit.");
    for priority in MessagePriority::ALL {
        for reason in Reason::ALL {
            let labels = [("priority", priority.name()), ("reason", reason.name())];
            shed.with(&labels, stats.shed_by_reason[priority.index()].of(reason));
        }
    }
    out.counter(
        "tidegate_critical_shed_total",
        "Refused Critical requests. Stays 0; anything else is a defect.",
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
        out.gauge("tidegate_priority_limit", "Slots of a priority; for critical, its reserve.");
    limits.with(&[("priority", "critical")], stats.critical_reserve);
    limits.with(&[("priority", "high")], stats.high_limit);
    limits.with(&[("priority", "normal")], stats.normal_limit);
    limits.with(&[("priority", "low")], stats.low_limit);
    out.gauge("tidegate_global_limit", "Slots of all priorities together.")
        .value(stats.global_limit);
}

fn load(out: &mut Exposition, control: &ControlPlane) {
    let now = control.admission.tracker().load_state();
    let mut states = out.gauge("tidegate_load_state", "1 for the current state, 0 for the others.");
    for state in LoadState::ALL {
        states.with(&[("state", state.name())], u8::from(state == now));
    }
    let mut holding = out.gauge("tidegate_alert", "1 while an alert is active.");
    for (name, holds) in Alert::NAMES.iter().zip(control.alerts.holding()) {
        holding.with(&[("alert", name)], u8::from(holds));
    }
    let slow = control.slow.holding() > 0;
    holding.with(&[("alert", DestinationSlow::NAME)], u8::from(slow));
    let mut raised = out.counter("tidegate_alerts_raised_total", "Activations of an alert.");
    for (name, count) in Alert::NAMES.iter().zip(control.alerts.raised()) {
        raised.with(&[("alert", name)], count);
    }
    raised.with(&[("alert", DestinationSlow::NAME)], control.slow.raised());
    let mut advice = out.gauge(
        "tidegate_retry_after_seconds",
        "Current retry advice for refused requests, by priority and limit.",
    );
    for priority in MessagePriority::ALL.into_iter().filter(|p| *p != MessagePriority::Critical) {
        for reason in Reason::ALL {
            let wait = control.admission.retry_board().advice(Refusal { priority, reason });
            let labels = [("priority", priority.name()), ("reason", reason.name())];
            advice.with(&labels, wait.as_secs_f64());
        }
    }
}

fn requests(out: &mut Exposition, metrics: &MetricsSnapshot) {
    let mut answers = out.counter(
        "tidegate_requests_answered_total",
        "Responses of upstreams passed on, by status class.",
    );
    for (class, count) in STATUS_CLASSES.iter().zip(metrics.answers) {
        answers.with(&[("class", class)], count);
    }
    let mut failures = out.counter(
        "tidegate_requests_failed_total",
        "Admitted requests without a response from an upstream, by reason.",
    );
    for (reason, count) in FAILURE_REASONS.iter().zip(metrics.failures) {
        failures.with(&[("reason", reason)], count);
    }
    let mut durations = out.histogram(
        "tidegate_requests_duration_seconds",
        "Time from the head of an admitted request to the end of its response, by priority.",
    );
    for priority in MessagePriority::ALL {
        let snapshot = &metrics.durations[priority.index()];
        snapshot.write(&mut durations, &[("priority", priority.name())]);
    }
}

fn tasks(out: &mut Exposition, control: &ControlPlane) {
    let metrics = control.threads.snapshot();
    out.counter("tidegate_tasks_issued_total", "Requests received for proxying.")
        .value(metrics.issued);
    let mut rejected =
        out.counter("tidegate_tasks_rejected_total", "Requests that a limit refused, by reason.");
    for (rejection, count) in RejectionReason::ALL.into_iter().zip(metrics.rejected) {
        rejected.with(&[("reason", rejection.name())], count);
    }
    let mut would = out.counter(
        "tidegate_requests_would_reject_total",
        "Requests that a limit would have refused outside of a dry run, by reason.",
    );
    for (rejection, count) in RejectionReason::ALL.into_iter().zip(metrics.would_reject) {
        would.with(&[("reason", rejection.name())], count);
    }
    out.gauge("tidegate_requests_queued", "Admitted requests whose response has not begun.")
        .value(metrics.queued);
    out.gauge(
        "tidegate_dry_run",
        "1 in a dry run, where limits only count what they would refuse.",
    )
    .value(u8::from(control.config.dry_run));
}

fn clients(out: &mut Exposition, control: &ControlPlane) {
    let shares: Vec<_> = control
        .admission
        .classifier()
        .shares()
        .map(|share| (share.client(), share.stats()))
        .collect();
    if shares.is_empty() {
        return;
    }
    let mut in_flight =
        out.gauge("tidegate_client_in_flight", "Requests in flight of a client with a share.");
    for (client, stats) in &shares {
        in_flight.with(&[("client", client)], stats.total_in_flight);
    }
    let mut refused = out.counter(
        "tidegate_client_share_refused_total",
        "Requests beyond their client's share; in a dry run they are only counted.",
    );
    for (client, stats) in &shares {
        let count: u64 = stats.shed_by_reason.iter().map(ReasonTotals::total).sum();
        refused.with(&[("client", client)], count);
    }
}

fn connections(out: &mut Exposition, control: &ControlPlane) {
    let metrics = control.threads.snapshot();
    out.gauge("tidegate_connections", "Open client connections.").value(metrics.connections);
    out.counter("tidegate_connections_total", "Client connections accepted.")
        .value(metrics.connections_total);
    out.counter(
        "tidegate_connections_refused_total",
        "Client connections refused at the connection limit.",
    )
    .value(control.threads.connections_refused());
    let buffers = control.threads.buffers();
    out.gauge("tidegate_response_buffer_bytes", "Bytes of responses that wait for their clients.")
        .value(buffers.held());
    out.counter(
        "tidegate_slow_readers_closed_total",
        "Client connections closed because unread responses exceeded proxy.buffer_mib.",
    )
    .value(buffers.closed());
}

fn upstreams(out: &mut Exposition, stats: &[UpstreamStats]) {
    let mut up =
        out.gauge("tidegate_upstream_up", "1 while connections to an upstream can be opened.");
    for upstream in stats {
        up.with(&[("upstream", &upstream.name)], u8::from(upstream.up));
    }
    let mut in_flight =
        out.gauge("tidegate_upstream_in_flight", "Requests in flight at an upstream.");
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
