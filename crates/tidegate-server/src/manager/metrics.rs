use super::meters::{ExecutorGauge, ManagerMeters};
use crate::control::Exposition;
use crate::telemetry::BOUNDS_S;
use tidegate::MessagePriority;

/// A gauge of an executor: its name, what it is, and where it stands.
type Gauge = (&'static str, &'static str, fn(&ExecutorGauge) -> u32);

const GAUGES: [Gauge; 4] = [
    ("tidegate_executor_up", "Whether an executor answers.", |it| u32::from(it.up)),
    ("tidegate_executor_slots", "The slots of an executor that answers.", |it| {
        live(it).map_or(0, |report| report.max_concurrent)
    }),
    ("tidegate_executor_running", "Executions that hold a slot.", |it| {
        live(it).map_or(0, |report| report.running)
    }),
    ("tidegate_executor_reserved", "Slots that are kept for executions to come.", |it| {
        live(it).map_or(0, |report| report.reserved)
    }),
];

fn live(executor: &ExecutorGauge) -> Option<&crate::worker::CapacityReport> {
    executor.report.as_ref().filter(|_| executor.up)
}

/// The series of tasks and of the executors they are placed on, which are as many as are configured.
pub fn write_metrics(out: &mut Exposition, meters: &ManagerMeters) {
    let (counts, gauges) = (meters.snapshot(), meters.gauges());
    let mut submitted =
        out.counter("tidegate_manager_submitted_total", "Tasks that were taken, by priority.");
    for priority in MessagePriority::ALL {
        submitted.with(&[("priority", priority.name())], counts.submitted[priority.index()]);
    }
    let mut ended =
        out.counter("tidegate_manager_ended_total", "Tasks that ended, by outcome and reason.");
    for (outcome, reason, count) in &counts.ended {
        ended.with(&[("outcome", outcome.name()), ("reason", reason.name())], count);
    }
    out.counter("tidegate_manager_sent_total", "Attempts that were sent to executors.")
        .value(counts.sent);
    out.counter(
        "tidegate_manager_refused_total",
        "Attempts and reservations that an executor refused because it was full (503).",
    )
    .value(counts.refused);
    let mut retried =
        out.counter("tidegate_manager_retried_total", "Attempts that were repeated, by why.");
    retried.with(&[("why", "failed")], counts.retried_failed);
    retried.with(&[("why", "lost")], counts.retried_lost);
    out.counter(
        "tidegate_manager_abandoned_total",
        "Attempts whose task was changed by somebody else meanwhile.",
    )
    .value(counts.abandoned);
    queued(out, meters);
    let mut waiting = out.gauge("tidegate_manager_queued", "Tasks that wait, by priority.");
    for priority in MessagePriority::ALL {
        waiting.with(&[("priority", priority.name())], gauges.waiting[priority.index()]);
    }
    out.gauge("tidegate_manager_running", "Tasks that an executor has.").value(gauges.running);
    out.gauge(
        "tidegate_manager_oldest_queued_seconds",
        "How long the task has waited that has waited longest.",
    )
    .value(gauges.oldest_queued.as_secs_f64());
    out.gauge("tidegate_manager_bytes", "What tasks that are not over hold in memory.")
        .value(gauges.bytes);
    out.gauge("tidegate_manager_slot_held_seconds", "How long tasks hold their slots, on average.")
        .value(gauges.held.unwrap_or_default().as_secs_f64());
    for (name, help, of) in GAUGES {
        let mut series = out.gauge(name, help);
        for executor in &gauges.executors {
            series.with(&[("executor", &executor.name)], of(executor));
        }
    }
}

fn queued(out: &mut Exposition, meters: &ManagerMeters) {
    let queued = meters.snapshot().queued;
    let mut series = out.histogram(
        "tidegate_manager_queued_seconds",
        "How long tasks waited until an executor accepted them.",
    );
    let mut sum = 0;
    for (bound, count) in BOUNDS_S.iter().zip(&queued.buckets) {
        sum += count;
        series.suffixed("_bucket", &[("le", &bound.to_string())], sum);
    }
    series.suffixed("_bucket", &[("le", "+Inf")], queued.count());
    series.suffixed("_sum", &[], queued.sum_ns as f64 / 1e9);
    series.suffixed("_count", &[], queued.count());
}
