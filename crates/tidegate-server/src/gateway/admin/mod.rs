//! The control plane: health, metrics, statistics, busy thresholds and decisions, answered at any load.
//! Uses upstreams, telemetry and the decision log, and the extensions that a node gives it.
//! Must not know how requests are proxied, nor what an extension is.

mod answer;
mod busy_threshold;
mod control_plane;
mod metrics;
mod routing_metrics;
mod stats;

pub use answer::answer;
pub use busy_threshold::ThresholdError;
pub use control_plane::{ControlPlane, NodeParts};
pub use stats::GatewayStats;
