use super::{CapacityReport, WorkerCounts};
use crate::control::Exposition;
use tidegate::task::{EndReason, Outcome};

/// Reasons that alerts look at: told also while they are 0, or the first one would not be an increase.
const WATCHED: [&str; 4] = ["full", "draining", "conflict", "reservation_gone"];

/// Writes what is told of an executor.
pub(super) fn write(out: &mut Exposition, capacity: &CapacityReport, counts: &WorkerCounts) {
    let gauges = [
        ("tidegate_worker_slots", "Executions that may run at once.", capacity.max_concurrent),
        ("tidegate_worker_running", "Slots in which an execution runs.", capacity.running),
        (
            "tidegate_worker_reserved",
            "Slots that are kept for executions to come.",
            capacity.reserved,
        ),
        (
            "tidegate_worker_draining",
            "1 when it is about to end, and takes nothing more.",
            u32::from(capacity.draining),
        ),
    ];
    for (name, help, value) in gauges {
        out.gauge(name, help).value(value);
    }
    write_ended(out, counts);
    let mut refused =
        out.counter("tidegate_worker_refused_total", "Requests for a slot that were refused.");
    for reason in WATCHED {
        refused.with(&[("reason", reason)], counts.refused.get(reason).unwrap_or(&0));
    }
    for (reason, count) in counts.refused.iter().filter(|(reason, _)| !WATCHED.contains(reason)) {
        refused.with(&[("reason", reason)], count);
    }
    let counters = [
        ("tidegate_worker_started_total", "Executions that were started.", counts.started),
        (
            "tidegate_worker_repeated_total",
            "Executions that were asked for again, and not started again.",
            counts.repeated,
        ),
        ("tidegate_worker_reservations_total", "Reservations that were made.", counts.reserved),
        (
            "tidegate_worker_reservations_expired_total",
            "Reservations that ran out before their execution came.",
            counts.reservations_expired,
        ),
        (
            "tidegate_worker_leases_expired_total",
            "Executions that were stopped because nobody asked for them any more.",
            counts.leases_expired,
        ),
    ];
    for (name, help, value) in counters {
        out.counter(name, help).value(value);
    }
    out.counter(
        "tidegate_worker_busy_seconds_total",
        "How long executions that are over have held their slots; beside the slots, the utilisation.",
    )
    .value(counts.ran_us as f64 / 1e6);
}

fn write_ended(out: &mut Exposition, counts: &WorkerCounts) {
    let mut ended = out.counter(
        "tidegate_worker_executions_total",
        "Executions that are over, by how they ended and why.",
    );
    let usual = (Outcome::Succeeded, EndReason::Exit);
    if !counts.ended.contains_key(&usual) {
        ended.with(&[("outcome", usual.0.name()), ("reason", usual.1.name())], 0);
    }
    for ((outcome, reason), count) in &counts.ended {
        ended.with(&[("outcome", outcome.name()), ("reason", reason.name())], count);
    }
}
