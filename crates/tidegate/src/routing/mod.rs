//! Busy-aware routing: an upstream for each request, or a refusal when all are busy.
//!
//! [`WorkerMonitor`] keeps the load that upstreams report; [`PushRouter`] reserves a slot for each request. The
//! decisions are those of `tidegate-core`; this module shares them between threads. It must not know HTTP.

mod ask;
mod assignment;
mod model;
mod monitor;
mod pool;
mod router;
mod stats;
mod table;
mod upstream;

pub use ask::Ask;
pub use assignment::Assignment;
pub use model::ANY_MODEL;
pub use monitor::{MonitorConfig, UnknownModel, WorkerMonitor};
pub use router::PushRouter;
pub use stats::{ModelStats, RankStats, UpstreamLoad};
pub use tidegate_core::routing::{
    Answer, BusyPreset, BusyThresholds, Charge, ChargeRule, DrainAdvisor, KvUsage, LoadReport,
    OnSilence, Overload, Pick, RouteError, Shares, Standing, Threshold, ThresholdOutOfRange,
    TriedUpstreams,
};
pub use upstream::{Upstream, UpstreamId};
