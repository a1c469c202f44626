use tidegate_core::window::Stage;

/// The results of a [`PipelineScenario`](super::PipelineScenario).
#[derive(Clone, Debug, PartialEq)]
pub struct PipelineReport {
    /// Items that were offered.
    pub offered: u64,
    /// Items that left Store.
    pub delivered: u64,
    /// Items in the pipeline at the end.
    pub held: u64,
    /// Items that were not accepted at the end: their senders have them.
    pub unsent: u64,
    /// Items that would have left Store if every window were infinite.
    pub ideal: f64,
    /// Of the time in which a stage was backlogged, the share in which its occupancy was in the band. Time in
    /// which the scenario blocks a stage is not looked at. 1 if none was backlogged.
    pub in_band: f64,
    /// By stage: for how many milliseconds it was backlogged, and for how many of them in the band.
    pub backlogged_ms: [(u64, u64); Stage::COUNT],
    /// The most bytes in all channels at once.
    pub bytes_max: u64,
    /// 99 % of items were at most this long in the pipeline.
    pub delay_p99_ms: u64,
    /// The samples, in order of time.
    pub ticks: Vec<Tick>,
}

/// One sample of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tick {
    /// The time in milliseconds.
    pub at_ms: u64,
    /// The windows it gave.
    pub windows: [u64; Stage::COUNT],
    /// Items in the windows.
    pub queued: [u64; Stage::COUNT],
    /// True if a sender waits for a credit.
    pub waits: [bool; Stage::COUNT],
    /// Why each window is what it is.
    pub causes: [tidegate_core::window::Cause; Stage::COUNT],
    /// Items that have left Store until now.
    pub delivered: u64,
}
