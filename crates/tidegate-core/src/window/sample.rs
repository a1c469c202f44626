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
    /// For how long a sender waited for a credit since the last sample, in nanoseconds: for how long any did,
    /// not the sum of all. Where that is not measured, all of the time if one did at all.
    pub waited_ns: u64,
    /// For how long at most an item that left was worked on, in nanoseconds, without waiting for the next stage;
    /// for a stage that works in batches the time of a batch. 0 if that was not measured.
    pub lease_ns: u64,
    /// The median of the service time of an item, in nanoseconds, without waiting for the next stage. For a stage
    /// that works in batches it is the time of a batch over its items: it should not move with their number.
    pub p50_ns: u64,
    /// Its 99th percentile, in nanoseconds.
    pub p99_ns: u64,
    /// How many measurements these two are made of. Keep a histogram until it has [`LATENCY_SAMPLES_MIN`], give
    /// it once, and begin a new one: a percentile of fewer is not looked at, because it would move with the
    /// load.
    pub latency_samples: u64,
}

/// What a stage has to know of the stages around it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Neighbours {
    /// The stage before it is full most of the time: whoever waits there is held up, not just early.
    pub upstream_presses: bool,
    /// Nothing leaves the stage after it: more for that one would only pile up.
    pub downstream_stalls: bool,
}
