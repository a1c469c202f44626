use super::meters::{ExecutorGauge, ManagerMeters};
use crate::http::{BOUNDS_S, Exposition, HistogramSnapshot};
use crate::tasks::execution::CapacityReport;
use tidegate::MessagePriority;

/// Gauge of an executor: name, help and value.
type Gauge = (&'static str, &'static str, fn(&ExecutorGauge) -> u32);

const GAUGES: [Gauge; 4] = [
    ("tidegate_executor_up", "1 while the executor answers.", |executor| u32::from(executor.up)),
    ("tidegate_executor_slots", "Slots of an executor that answers.", |executor| {
        live(executor).map_or(0, |report| report.max_concurrent)
    }),
    ("tidegate_executor_running", "Executions that hold a slot.", |executor| {
        live(executor).map_or(0, |report| report.running)
    }),
    ("tidegate_executor_reserved", "Slots reserved for executions to come.", |executor| {
        live(executor).map_or(0, |report| report.reserved)
    }),
];

fn live(executor: &ExecutorGauge) -> Option<&CapacityReport> {
    executor.report.as_ref().filter(|_| executor.up)
}

/// Writes the series of the manager and of its configured executors.
pub fn write_metrics(out: &mut Exposition, meters: &ManagerMeters) {
    let (counts, gauges) = (meters.snapshot(), meters.gauges());
    let mut submitted =
        out.counter("tidegate_manager_submitted_total", "Tasks submitted, by priority.");
    for priority in MessagePriority::ALL {
        submitted.with(&[("priority", priority.name())], counts.submitted[priority.index()]);
    }
    let mut ended =
        out.counter("tidegate_manager_ended_total", "Tasks ended, by outcome and reason.");
    for (outcome, reason, count) in &counts.ended {
        ended.with(&[("outcome", outcome.name()), ("reason", reason.name())], count);
    }
    out.counter("tidegate_manager_sent_total", "Attempts sent to executors.").value(counts.sent);
    out.counter(
        "tidegate_manager_refused_total",
        "Attempts and reservations that a full executor refused (503).",
    )
    .value(counts.refused);
    let mut retried = out.counter("tidegate_manager_retried_total", "Attempts retried, by reason.");
    retried.with(&[("reason", "failed")], counts.retried_failed);
    retried.with(&[("reason", "lost")], counts.retried_lost);
    out.counter(
        "tidegate_manager_abandoned_total",
        "Attempts whose task another manager has changed.",
    )
    .value(counts.abandoned);
    histogram(
        out,
        "tidegate_manager_queued_seconds",
        "Time from the submission of a task to its acceptance by an executor.",
        &counts.queued,
    );
    histogram(
        out,
        "tidegate_manager_slot_seconds",
        "Time that attempts occupied their slots.",
        &counts.slot_time,
    );
    let mut waiting = out.gauge("tidegate_manager_queued", "Queued tasks, by priority.");
    for priority in MessagePriority::ALL {
        waiting.with(&[("priority", priority.name())], gauges.waiting[priority.index()]);
    }
    out.gauge("tidegate_manager_running", "Tasks that run on an executor.").value(gauges.running);
    out.gauge(
        "tidegate_manager_oldest_queued_seconds",
        "Time in the queue of the oldest queued task.",
    )
    .value(gauges.oldest_queued.as_secs_f64());
    out.gauge("tidegate_manager_bytes", "Memory of tasks that are not over.").value(gauges.bytes);
    for (name, help, value) in GAUGES {
        let mut series = out.gauge(name, help);
        for executor in &gauges.executors {
            series.with(&[("executor", &executor.name)], value(executor));
        }
    }
}

fn histogram(
    out: &mut Exposition,
    name: &'static str,
    help: &'static str,
    snapshot: &HistogramSnapshot,
) {
    let mut series = out.histogram(name, help);
    let mut sum = 0;
    for (bound, count) in BOUNDS_S.iter().zip(&snapshot.buckets) {
        sum += count;
        series.suffixed("_bucket", &[("le", &bound.to_string())], sum);
    }
    series.suffixed("_bucket", &[("le", "+Inf")], snapshot.count());
    series.suffixed("_sum", &[], snapshot.sum_ns as f64 / 1e9);
    series.suffixed("_count", &[], snapshot.count());
}
