//! What the gateway counts and measures.

mod histogram;
mod thread_metrics;

pub use histogram::{BOUNDS_S, Histogram, HistogramSnapshot};
pub use thread_metrics::{MetricsSnapshot, Queued, STATUS_CLASSES, ThreadMetrics};
