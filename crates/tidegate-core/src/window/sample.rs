/// Minimum number of measurements of a p99: ten of them lie above it.
pub const LATENCY_SAMPLES_MIN: u64 = 1_000;

/// Measurements of a stage since the previous sample, usually 100 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageSample {
    /// Items in the window now: waiting or being processed.
    pub queued_items: u64,
    /// Bytes of these items.
    pub queued_bytes: u64,
    /// Items that entered since the last sample.
    pub arrived_items: u64,
    /// Items that left since the last sample.
    pub departed_items: u64,
    /// Time during which at least one sender waited for a credit since the last sample, in nanoseconds, not summed
    /// over senders. If unmeasured, the whole interval if any sender waited.
    pub waited_ns: u64,
    /// Longest processing time of an item that left, in nanoseconds, without waiting for the next stage; for a
    /// stage that works in batches the time of a batch. 0 if unmeasured.
    pub lease_ns: u64,
    /// Median service time of an item, in nanoseconds, without waiting for the next stage. For a stage that works
    /// in batches, the time of a batch divided by its items: it should not depend on their number.
    pub p50_ns: u64,
    /// 99th percentile of the service time, in nanoseconds.
    pub p99_ns: u64,
    /// Number of measurements behind these two. Keep a histogram until it has [`LATENCY_SAMPLES_MIN`], report it
    /// once, and start a new one: a percentile of fewer is ignored, because it would depend on the load.
    pub latency_samples: u64,
}

/// State of the adjacent stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Neighbours {
    /// The stage before it is full most of the time: its waiting items are held up, not just early.
    pub upstream_presses: bool,
    /// Nothing leaves the stage after it: more input for that one would only queue up.
    pub downstream_stalls: bool,
}
