//! The control plane: health, metrics, snapshots and thresholds, answered whatever the load.

mod answer;
mod busy_threshold;
mod exposition;
mod handlers;
mod metrics;
mod routing_metrics;
mod stats;

pub use answer::answer;
pub use busy_threshold::ThresholdError;
pub use handlers::Handler;
pub use stats::GatewayStats;
