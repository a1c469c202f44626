use crate::http::Exposition;
use crate::tasks::execution::CapacityReport;
use crate::tasks::executor::counts::WorkerCounts;
use tidegate::task::{EndReason, TaskOutcome};

/// Reasons that alerts watch. Written also while they are 0: otherwise the first refusal would be no increase.
const WATCHED: [&str; 4] = ["full", "draining", "conflict", "reservation_gone"];

/// Writes the series of an executor.
pub(super) fn write(out: &mut Exposition, capacity: &CapacityReport, counts: &WorkerCounts) {
    let gauges = [
        ("tidegate_worker_slots", "Slots of the worker.", capacity.max_concurrent),
        ("tidegate_worker_running", "Executions that hold a slot.", capacity.running),
        ("tidegate_worker_reserved", "Slots reserved for executions to come.", capacity.reserved),
        (
            "tidegate_worker_draining",
            "1 while the worker shuts down and accepts nothing more.",
            u32::from(capacity.draining),
        ),
    ];
    for (name, help, value) in gauges {
        out.gauge(name, help).value(value);
    }
    write_ended(out, counts);
    let mut refused =
        out.counter("tidegate_worker_refused_total", "Requests for a slot refused, by reason.");
    for reason in WATCHED {
        refused.with(&[("reason", reason)], counts.refused.get(reason).unwrap_or(&0));
    }
    for (reason, count) in counts.refused.iter().filter(|(reason, _)| !WATCHED.contains(reason)) {
        refused.with(&[("reason", reason)], count);
    }
    let counters = [
        ("tidegate_worker_started_total", "Executions started.", counts.started),
        (
            "tidegate_worker_repeated_total",
            "Repeated execute requests, which started nothing.",
            counts.repeated,
        ),
        ("tidegate_worker_reservations_total", "Reservations granted.", counts.reserved),
        (
            "tidegate_worker_reservations_expired_total",
            "Reservations that expired before their execution started.",
            counts.reservations_expired,
        ),
        (
            "tidegate_worker_leases_expired_total",
            "Executions stopped because their lease expired.",
            counts.leases_expired,
        ),
    ];
    for (name, help, value) in counters {
        out.counter(name, help).value(value);
    }
    out.counter(
        "tidegate_worker_busy_seconds_total",
        "Time that ended executions occupied slots; divided by the slots, the utilisation.",
    )
    .value(counts.ran_us as f64 / 1e6);
}

fn write_ended(out: &mut Exposition, counts: &WorkerCounts) {
    let mut ended =
        out.counter("tidegate_worker_executions_total", "Executions ended, by outcome and reason.");
    let usual = (TaskOutcome::Succeeded, EndReason::Exit);
    if !counts.ended.contains_key(&usual) {
        ended.with(&[("outcome", usual.0.name()), ("reason", usual.1.name())], 0);
    }
    for ((outcome, reason), count) in &counts.ended {
        ended.with(&[("outcome", outcome.name()), ("reason", reason.name())], count);
    }
}
