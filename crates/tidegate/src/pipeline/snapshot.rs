use serde::Serialize;
use tidegate_core::signal::BackpressureSignal;
use tidegate_core::window::{Cause, Law, LawState, Stage};

/// What the pipeline was like when it was last measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PipelineSnapshot {
    /// How windows follow load.
    pub law: Law,
    /// What senders are told.
    pub signal: BackpressureSignal,
    /// What all stages hold, and what is held of frames that have not come whole.
    pub memory_bytes: u64,
    /// What they may hold.
    pub budget_bytes: u64,
    /// How much of what the law wants above the floors the budget allows, 0 … 1.
    pub budget_ratio: f64,
    /// Whether the store could last be written and read.
    pub store_ok: bool,
    /// Each stage, in the order in which data passes them.
    pub stages: Vec<StageSnapshot>,
}

/// What one stage was like.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageSnapshot {
    /// Which.
    pub stage: Stage,
    /// Slots that it may hold.
    pub window: u64,
    /// Slots of it that may be filled.
    pub credits: u64,
    /// Bytes that it may hold.
    pub bytes_max: u64,
    /// Slots that it holds, being worked on included.
    pub queued: u64,
    /// Their bytes.
    pub queued_bytes: u64,
    /// How much of its window that is.
    pub occupancy: f64,
    /// Senders that wait for room.
    pub waiting_senders: usize,
    /// Half of the items took at most this long.
    pub p50_ns: u64,
    /// 99 of 100 items took at most this long.
    pub p99_ns: u64,
    /// What that is when nothing is congested.
    pub baseline_p99_ns: u64,
    /// Slots that arrive a second.
    pub arrivals: f64,
    /// Slots that leave a second.
    pub throughput: f64,
    /// Where its law is.
    pub state: LawState,
    /// Why its window is what it is.
    pub cause: Cause,
    /// How often its window was made smaller because of congestion or a stall.
    pub backpressure_events: u64,
}
