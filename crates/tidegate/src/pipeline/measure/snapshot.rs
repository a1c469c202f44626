use super::meter::ServiceHistogram;
use serde::Serialize;
use tidegate_core::signal::BackpressureSignal;
use tidegate_core::window::{Cause, Law, LawState, Stage};

/// Last measurement of a pipeline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PipelineSnapshot {
    /// Control law of the windows.
    pub law: Law,
    /// Signal to senders.
    pub signal: BackpressureSignal,
    /// Bytes in all stages, incomplete frames included.
    pub memory_bytes: u64,
    /// Byte budget of all stages.
    pub budget_bytes: u64,
    /// Share of the windows above their floors that the budget allows, 0 … 1.
    pub budget_ratio: f64,
    /// True if the last write and the last read of the store succeeded.
    pub store_ok: bool,
    /// Each stage, in the order in which data passes them.
    pub stages: Vec<StageSnapshot>,
}

/// Last measurement of one stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageSnapshot {
    /// The stage.
    pub stage: Stage,
    /// Window, in slots.
    pub window: u64,
    /// Credits: slots of the window that may be filled.
    pub credits: u64,
    /// Byte limit.
    pub bytes_max: u64,
    /// Occupied slots, those being processed included.
    pub queued: u64,
    /// Their bytes.
    pub queued_bytes: u64,
    /// Queued slots / window.
    pub occupancy: f64,
    /// Number of senders waiting for room.
    pub waiting_senders: usize,
    /// Median service time of an item.
    pub p50_ns: u64,
    /// 99th percentile of the service time of an item.
    pub p99_ns: u64,
    /// p99 without congestion.
    pub baseline_p99_ns: u64,
    /// Arrivals, in slots/s.
    pub arrivals: f64,
    /// Departures, in slots/s.
    pub throughput: f64,
    /// Slots that have left since the start.
    #[serde(skip)]
    pub departed: u64,
    /// Service times since the start.
    #[serde(skip)]
    pub service: ServiceHistogram,
    /// State of its control law.
    pub state: LawState,
    /// Cause of the current window.
    pub cause: Cause,
    /// Number of times that congestion or a stall shrank its window.
    pub backpressure_events: u64,
}
