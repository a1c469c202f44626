/// From this many measurements on a p99 is one: ten of them lie beyond it.
pub const LATENCY_SAMPLES_MIN: u64 = 1_000;

/// What a stage measured since the sample before, usually 100 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageSample {
    /// Items in the window now: those that wait and those that are being worked on.
    pub queued_items: u64,
    /// Their bytes.
    pub queued_bytes: u64,
    /// Items that entered since the last sample.
    pub arrived_items: u64,
    /// Items that left since the last sample.
    pub departed_items: u64,
    /// Whether a sender had to wait for a credit since the last sample, or is waiting now.
    pub waited: bool,
    /// The median of the service time, in nanoseconds; without the time spent waiting for the next stage.
    pub p50_ns: u64,
    /// Its 99th percentile, in nanoseconds.
    pub p99_ns: u64,
    /// How many measurements these two are made of. Keep a histogram until it has [`LATENCY_SAMPLES_MIN`], give
    /// it once, and begin a new one: a percentile of fewer is not looked at, because it would move with the
    /// load.
    pub latency_samples: u64,
}

/// What is after a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Downstream {
    /// A stage that gives credits back, or nothing.
    #[default]
    Flowing,
    /// A stage from which nothing leaves: more for it would only pile up.
    Stalled,
}
