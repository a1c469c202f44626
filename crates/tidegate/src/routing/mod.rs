//! Busy-aware routing: an upstream for each request, or a refusal when all are busy.
//!
//! [`WorkerMonitor`] keeps the load that upstreams report; [`PushRouter`] reserves a slot for each request. The
//! decisions are those of `tidegate-core`; this module shares them between threads. It must not know HTTP.

mod acquire_error;
mod ask;
mod assignment;
mod model;
mod monitor;
mod own_delay;
mod pass;
mod pool;
mod queue;
mod router;
mod stats;
mod sync;
mod table;
mod upstream;
mod upstream_id;

pub use acquire_error::AcquireError;
pub use ask::Ask;
pub use assignment::Assignment;
pub use model::ANY_MODEL;
pub use monitor::{MonitorConfig, UnknownModel, WorkerMonitor};
pub use router::PushRouter;
pub use stats::{FoundLimit, ModelStats, QueueLoad, RankStats, UpstreamLoad};
pub use tidegate_core::routing::{
    Answer, BusyPreset, BusyThresholds, Charge, ChargeRule, Demand, FlapLog, HeldChanges, KvUsage,
    LoadReport, OnSilence, Overload, Pick, RouteError, ServiceEstimator, Standing, Threshold,
    ThresholdOutOfRange, TriedUpstreams, UpstreamLimit,
};
pub use upstream::Upstream;
pub use upstream_id::UpstreamId;
