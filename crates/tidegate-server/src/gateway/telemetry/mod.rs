//! Telemetry of the gateway: counters of its threads, their liveness, alerts and retry advice.
//! Uses histograms and admission of `http`.
//! Must not know requests, upstreams or connections.

mod observer;
mod thread_metrics;
mod threads;

pub use observer::{AlertBoard, Observer, observe_forever};
pub use thread_metrics::{FAILURE_REASONS, MetricsSnapshot, Queued, STATUS_CLASSES, ThreadMetrics};
pub use threads::IoThreads;
