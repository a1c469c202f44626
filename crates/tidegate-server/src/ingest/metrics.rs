use super::IngestStats;
use crate::http::Exposition;
use tidegate::pipeline::{SERVICE_BOUNDS_NS, StageSnapshot};
use tidegate::window::LawState;

/// A counter of the stats: its name, what it is, and where it stands.
type Count = (&'static str, &'static str, fn(&IngestStats) -> u64);

/// A gauge of a stage: its name, what it is, and where it stands.
type StageGauge = (&'static str, &'static str, fn(&StageSnapshot) -> f64);

const COUNTS: &[Count] = &[
    ("tidegate_ingest_bytes_total", "Bytes taken from senders.", |s| s.counts.bytes),
    ("tidegate_ingest_frames_total", "Frames taken from senders.", |s| s.counts.frames),
    ("tidegate_ingest_lines_total", "Lines taken from senders.", |s| s.counts.lines),
    ("tidegate_ingest_fields_skipped_total", "Fields of lines that are no number.", |s| {
        s.counts.fields_skipped
    }),
    ("tidegate_ingest_records_total", "Records made of frames and lines.", |s| s.counts.records),
    ("tidegate_ingest_records_stored_total", "Records that are durable.", |s| {
        s.counts.records_stored
    }),
    ("tidegate_ingest_batches_stored_total", "Batches that are durable.", |s| {
        s.counts.batches_stored
    }),
    (
        "tidegate_ingest_batches_repeated_total",
        "Batches that came again, and did not count again.",
        |s| s.counts.batches_repeated,
    ),
    ("tidegate_ingest_commits_total", "Times the store was written.", |s| s.counts.commits),
    (
        "tidegate_ingest_store_failures_total",
        "Times the store could not be written or read.",
        |s| s.counts.store_failures,
    ),
    (
        "tidegate_ingest_senders_superseded_total",
        "Connections that another one of the same sender took the place of.",
        |s| s.counts.senders_superseded,
    ),
    (
        "tidegate_ingest_connections_refused_total",
        "Senders turned away at ingest.connections_max.",
        |s| s.connections_refused,
    ),
];

const STAGE_GAUGES: &[StageGauge] = &[
    ("tidegate_scheduler_window_size", "Slots that a stage may hold.", |s| s.window as f64),
    ("tidegate_scheduler_credits_granted", "Slots of it that may be filled.", |s| s.credits as f64),
    ("tidegate_scheduler_occupancy_ratio", "How much of its window a stage holds.", |s| {
        s.occupancy
    }),
    ("tidegate_scheduler_queued_bytes", "What a stage holds.", |s| s.queued_bytes as f64),
    ("tidegate_scheduler_waiting_senders", "Senders that wait for room in a stage.", |s| {
        s.waiting_senders as f64
    }),
];

/// The series of the ingestion. Every label has a fixed set of values.
pub fn write_metrics(out: &mut Exposition, stats: &IngestStats) {
    for (name, help, of) in COUNTS {
        out.counter(name, help).value(of(stats));
    }
    let mut open = out.gauge("tidegate_ingest_connections", "Open connections of senders.");
    open.with(&[("protocol", "frames")], stats.connections_frames);
    open.with(&[("protocol", "lines")], stats.connections_lines);
    let mut rejected = out.counter("tidegate_ingest_rejected_total", "What was refused, and why.");
    for row in &stats.counts.rejected {
        rejected.with(&[("protocol", row.protocol), ("reason", row.reason)], row.count);
    }
    let mut fallbacks =
        out.counter("tidegate_tariff_fallbacks_total", "Records that no tariff fits, by reason.");
    for (reason, count) in &stats.counts.fallbacks {
        fallbacks.with(&[("reason", reason)], count);
    }
    out.gauge("tidegate_ingest_up", "1 while all parts of the ingestion run.")
        .value(u8::from(stats.up));
    out.gauge("tidegate_tariffs", "How many tariffs are in force.").value(stats.tariffs);
    stages(out, stats);
}

fn stages(out: &mut Exposition, stats: &IngestStats) {
    let pipeline = &stats.pipeline;
    for (name, help, of) in STAGE_GAUGES {
        let mut series = out.gauge(name, help);
        for stage in &pipeline.stages {
            series.with(&[("stage", stage.stage.name())], of(stage));
        }
    }
    let mut departed =
        out.counter("tidegate_scheduler_departed_total", "Slots that have left a stage.");
    for stage in &pipeline.stages {
        departed.with(&[("stage", stage.stage.name())], stage.departed);
    }
    let mut service = out
        .histogram("tidegate_scheduler_service_seconds", "Time that a stage took for each item.");
    let bounds_s = SERVICE_BOUNDS_NS.map(|bound_ns| bound_ns as f64 / 1e9);
    for stage in &pipeline.stages {
        let (counts, sum_s) = (&stage.service.buckets, stage.service.sum_ns as f64 / 1e9);
        service.distribution(&[("stage", stage.stage.name())], &bounds_s, counts, sum_s);
    }
    let mut events = out.counter(
        "tidegate_scheduler_backpressure_events_total",
        "Times a stage's window was made smaller because it was congested.",
    );
    for stage in &pipeline.stages {
        events.with(&[("stage", stage.stage.name())], stage.backpressure_events);
    }
    let mut states =
        out.gauge("tidegate_scheduler_state", "1 for the state that a stage's law is in.");
    for stage in &pipeline.stages {
        for state in LawState::ALL {
            let labels = [("stage", stage.stage.name()), ("state", state.name())];
            states.with(&labels, u8::from(stage.state == state));
        }
    }
    out.gauge("tidegate_scheduler_memory_bytes", "What all stages hold, and what is cut in half.")
        .value(pipeline.memory_bytes);
    out.gauge("tidegate_scheduler_memory_budget_bytes", "What they may hold.")
        .value(pipeline.budget_bytes);
    out.gauge("tidegate_ingest_level", "What senders are asked: 0 nothing … 3 to send little.")
        .value(pipeline.signal.level.index());
}
