use super::hub::WorkerHub;
use super::stats::StatsView;
use super::worker_session::Snapshot;
use crate::http::Exposition;
use crate::tasks::session::{BufferMetrics, WorkerStats};
use serde::Serialize;
use tidegate::MessageClass;
use tidegate::outbox::{DestinationQueueStats, QueueState};
use tidegate::signal::BackpressureLevel;

/// A worker, as the API shows it.
#[derive(Clone, Debug, Serialize)]
pub struct WorkerView {
    /// Name.
    pub name: String,
    /// The worker is connected.
    pub connected: bool,
    /// Address of its control connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Seconds since it joined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connected_s: Option<u64>,
    /// Program and version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub software: String,
    /// All slots.
    pub slots: u32,
    /// Slots that executions hold.
    pub running: u32,
    /// The worker shuts down.
    pub draining: bool,
    /// Runtimes that it has.
    pub runtimes: Vec<String>,
    /// Executions that the manager follows.
    pub followed: usize,
    /// Its own report: CPU, memory, load, flush state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stats: Option<WorkerStats>,
    /// Its buffers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffers: Option<BufferMetrics>,
    /// The manager's queue to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<DestinationQueueStats>,
}

/// Every worker, and the buffer of their progress.
#[derive(Clone, Debug, Serialize)]
pub struct WorkerList {
    /// Name of the manager.
    pub manager: String,
    /// Buffer of progress, whose level the workers follow.
    pub stats_buffer: StatsView,
    /// Workers, by name.
    pub workers: Vec<WorkerView>,
}

// === impl WorkerHub ===

impl WorkerHub {
    /// Every worker now.
    #[must_use]
    pub fn list(&self) -> WorkerList {
        let view = |worker: std::sync::Arc<super::WorkerSession>| {
            let queue = self.queue_stats(worker.name());
            WorkerView::new(worker.name(), worker.snapshot(), queue)
        };
        WorkerList {
            manager: self.settings.manager.clone(),
            stats_buffer: self.stats.view(),
            workers: self.workers().into_iter().map(view).collect(),
        }
    }
}

// === impl WorkerView ===

impl WorkerView {
    fn new(name: &str, snapshot: Snapshot, queue: Option<DestinationQueueStats>) -> Self {
        let Snapshot { live, capacity, stats, debug, followed } = snapshot;
        let report = capacity.filter(|_| live.is_some());
        Self {
            name: name.to_owned(),
            connected: live.is_some(),
            address: live.as_ref().map(|live| live.peer.to_string()),
            connected_s: live.as_ref().map(|live| live.since.elapsed().as_secs()),
            software: live.map(|live| live.software).unwrap_or_default(),
            slots: report.as_ref().map_or(0, |report| report.max_concurrent),
            running: report.as_ref().map_or(0, |report| report.running),
            draining: report.as_ref().is_some_and(|report| report.draining),
            runtimes: report.map(|report| report.runtimes).unwrap_or_default(),
            followed,
            stats,
            buffers: debug,
            queue,
        }
    }
}

/// Writes the series of the buffer of progress and of the workers.
pub fn write_worker_metrics(out: &mut Exposition, hub: &WorkerHub) {
    let WorkerList { stats_buffer: buffer, workers, manager } = hub.list();
    write_buffer(out, &buffer, &manager);
    let mut flush =
        out.gauge("tidegate_flush_state", "Connected workers by the state of their flush loop.");
    for state in ["NO_BACKPRESSURE", "THROTTLED", "BATCH_ONLY", "REJECT"] {
        let is_in = |worker: &&WorkerView| {
            worker.stats.as_ref().is_some_and(|stats| stats.flush_state == state)
        };
        flush.with(&[("state", state)], workers.iter().filter(is_in).count());
    }
    write_workers(out, &workers);
    out.counter("tidegate_manager_worker_sessions_total", "Sessions of workers that have begun.")
        .value(hub.sessions());
    let totals = hub.queue_totals();
    out.counter(
        "tidegate_manager_worker_queues_evicted_total",
        "Idle queues to workers that made room for others.",
    )
    .value(totals.evicted);
}

fn write_buffer(out: &mut Exposition, buffer: &StatsView, manager: &str) {
    out.gauge("tidegate_stats_buffer_waiting", "Updates of workers that wait for the manager.")
        .value(buffer.waiting);
    out.gauge("tidegate_stats_buffer_capacity", "Most updates of workers that may wait.")
        .value(buffer.capacity);
    out.counter("tidegate_stats_buffer_recorded_total", "Updates of workers accepted.")
        .value(buffer.totals.recorded);
    out.counter("tidegate_stats_buffer_merged_total", "Updates merged into one that waited.")
        .value(buffer.totals.merged);
    let mut refused = out
        .counter("tidegate_stats_buffer_refused_total", "Updates of workers refused, by reason.");
    refused.with(&[("reason", "unbatched")], buffer.totals.unbatched);
    refused.with(&[("reason", "full")], buffer.totals.full);
    let mut dropped = out.counter(
        "tidegate_stats_buffer_dropped_total",
        "Updates of workers dropped at REJECT, by class.",
    );
    for class in MessageClass::ALL {
        dropped.with(&[("class", class.name())], buffer.totals.dropped[class.index()]);
    }
    let mut shed = out.counter(
        "tidegate_manager_worker_frames_shed_total",
        "Frames of workers shed by the manager's admission, by priority.",
    );
    let admission = &buffer.admission;
    let sheds = [
        ("critical", admission.critical_shed),
        ("high", admission.high_shed),
        ("normal", admission.normal_shed),
        ("low", admission.low_shed),
    ];
    for (priority, count) in sheds {
        shed.with(&[("priority", priority)], count);
    }
    let mut level = out.gauge(
        "tidegate_backpressure_level",
        "Backpressure level for workers: 0 NONE, 1 THROTTLE, 2 BATCH, 3 REJECT.",
    );
    let number = BackpressureLevel::ALL.iter().position(|level| *level == buffer.level);
    level.with(&[("manager", manager)], number.unwrap_or(0));
}

fn write_workers(out: &mut Exposition, workers: &[WorkerView]) {
    type Gauge = (&'static str, &'static str, fn(&WorkerView) -> Option<f64>);
    let gauges: [Gauge; 8] = [
        ("tidegate_manager_worker_connected", "1 while the worker is connected.", |worker| {
            Some(f64::from(u8::from(worker.connected)))
        }),
        ("tidegate_manager_worker_slots", "Slots of a connected worker.", |worker| {
            Some(f64::from(worker.slots))
        }),
        ("tidegate_manager_worker_running", "Executions that hold a slot.", |worker| {
            Some(f64::from(worker.running))
        }),
        (
            "tidegate_manager_worker_cpu_ratio",
            "Use of all cores of the worker's machine.",
            |worker| worker.stats.as_ref()?.cpu,
        ),
        (
            "tidegate_manager_worker_memory_bytes",
            "Memory in use on the worker's machine.",
            |worker| worker.stats.as_ref()?.memory_bytes.map(|bytes| bytes as f64),
        ),
        ("tidegate_manager_worker_load1", "Load average of one minute.", |worker| {
            worker.stats.as_ref()?.load_1m
        }),
        ("tidegate_manager_worker_updates_waiting", "Updates that wait for a flush.", |worker| {
            Some(worker.stats.as_ref()?.updates_waiting as f64)
        }),
        (
            "tidegate_manager_worker_queue_state",
            "State of the manager's queue to the worker: 0 HEALTHY … 4 SATURATED.",
            |worker| {
                let state = worker.queue.as_ref()?.queue.state;
                QueueState::ALL.iter().position(|known| *known == state).map(|at| at as f64)
            },
        ),
    ];
    for (name, help, value) in gauges {
        let mut series = out.gauge(name, help);
        for worker in workers {
            if let Some(value) = value(worker) {
                series.with(&[("worker", &worker.name)], value);
            }
        }
    }
    let mut updates = out.counter(
        "tidegate_manager_worker_updates_total",
        "Updates at workers, by what became of them.",
    );
    for worker in workers {
        let Some(buffers) = &worker.buffers else { continue };
        let dropped: u64 = buffers.dropped.iter().sum();
        for (outcome, count) in
            [("merged", buffers.merged), ("delayed", buffers.delayed), ("dropped", dropped)]
        {
            updates.with(&[("worker", &worker.name), ("outcome", outcome)], count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::manager::sessions::{HubSettings, session_channels};
    use crate::tasks::session::{Join, Lane};
    use std::time::Duration;

    #[tokio::test]
    async fn sessions_and_connected_workers_are_told() {
        let settings = HubSettings { manager: "m1".to_owned(), ..HubSettings::default() };
        let hub = WorkerHub::new(settings, session_channels().0).unwrap();
        let told = |line: &str| {
            let mut out = Exposition::default();
            write_worker_metrics(&mut out, &hub);
            let text = out.finish();
            assert!(text.lines().any(|given| given == line), "{line} is not in {text}");
        };
        told("tidegate_manager_worker_sessions_total 0");
        told("tidegate_backpressure_level{manager=\"m1\"} 0");
        let worker = hub.worker("w1").unwrap();
        for _ in 0..2 {
            let join = Join {
                version: 1,
                lane: Lane::Control,
                worker: "w1".to_owned(),
                incarnation: 1,
                session: None,
                token: None,
                software: String::new(),
                capacity: None,
            };
            let (id, peer) = (hub.next_session(), "127.0.0.1:1".parse().unwrap());
            worker.begin(id, join, peer, Duration::from_secs(1)).unwrap();
        }
        told("tidegate_manager_worker_sessions_total 2");
        told("tidegate_manager_worker_connected{worker=\"w1\"} 1");
        worker.end(2);
        told("tidegate_manager_worker_connected{worker=\"w1\"} 0");
    }
}
