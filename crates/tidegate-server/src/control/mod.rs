//! The control plane: health, metrics and snapshots, answered whatever the load.

mod answer;
mod exposition;
mod handlers;
mod metrics;
mod stats;

pub use answer::answer;
pub use handlers::Handler;
pub use stats::GatewayStats;
