//! The control plane: health, metrics, snapshots and thresholds, answered whatever the load.

mod answer;
mod busy_threshold;
mod exposition;
mod handlers;
mod metrics;
mod operators;
mod read_body;
mod routing_metrics;
mod stats;
mod tasks;

pub use answer::answer;
pub(crate) use answer::{json_response, text};
pub use busy_threshold::ThresholdError;
pub(crate) use busy_threshold::{is_cross_origin, percent_decoded};
pub use exposition::Exposition;
pub use handlers::Handler;
pub(crate) use metrics::write_process;
pub use operators::serve_operators;
pub use stats::GatewayStats;
pub use tasks::{Door, EventStream, TaskApiError, TaskRoute, TaskTerms, TaskWatchers, answer_task};
