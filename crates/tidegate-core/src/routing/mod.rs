//! Busy-aware routing: the choice of an upstream for a request, and the refusal when all of them are busy.
//!
//! May use `admission` (retry bounds), `limit` and `flow` (rates). Must not know threads, sockets or HTTP: the
//! caller gives the time and the random numbers, and shares the state between threads.

mod availability;
mod flap_log;
mod load;
mod policy;
mod thresholds;

pub use crate::flow::ServiceEstimator;
pub use availability::{Availability, AvailabilityEntry, FreeSet, Loads, UpstreamState};
pub use flap_log::{FlapLog, HeldChanges};
pub use load::{
    Charge, ChargeRule, ChargeTicket, ExpectedWait, KvUsage, LoadAccount, LoadReport, OnSilence,
    RANKS_MAX, RankReport, RankView, Standing, UpstreamAccount, UpstreamLimit, UpstreamTicket,
};
pub use policy::{
    Answer, Demand, Latency, Overload, Pick, Pool, RouteError, RouteQuery, RoutingPolicy,
    TriedUpstreams,
};
pub use thresholds::{BusyPreset, BusyThresholds, Threshold, ThresholdOutOfRange};
