//! Busy-aware routing: a worker for each request, or an honest refusal when all are busy.
//!
//! [`WorkerMonitor`] keeps what workers say of their load, [`PushRouter`] gives each request a place at one of
//! them. The decisions are those of `tidegate-core`; here they are shared between threads.

mod error;
mod model;
mod monitor;
mod router;
mod stats;
mod table;
mod worker;

pub use error::{Overload, RouteError};
pub use model::ANY_MODEL;
pub use monitor::{MonitorConfig, UnknownModel, WorkerMonitor};
pub use router::{Ask, Assignment, PushRouter};
pub use stats::{ModelStats, RankStats, WorkerStats};
pub use tidegate_core::routing::{
    Answer, BusyPreset, BusyThresholds, Charge, ChargeRule, DrainAdvisor, KvUsage, LoadReport,
    OnSilence, OutOfRange, Pick, Shares, Standing, Threshold,
};
pub use worker::{Worker, WorkerId};
