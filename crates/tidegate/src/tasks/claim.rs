use super::TaskRecord;

/// Claim of queued tasks that belong to nobody, for free slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Manager that claims.
    pub owner: String,
    /// Free slots of executors with the same runtimes.
    pub groups: Vec<ClaimGroup>,
    /// Tasks whose retry time is at or before this one, in milliseconds of Unix time, are queued first.
    pub due_ms: Option<u64>,
    /// An earlier claim of this process was not answered, and may have been made.
    pub doubt: bool,
}

/// Answer to a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claimed {
    /// Tasks that were claimed now, in the order of the queue.
    pub tasks: Vec<TaskRecord>,
    /// In doubt: tasks of all earlier claims of this process that no step had followed. Most are known to it.
    pub before: Vec<TaskRecord>,
}

/// Free slots of executors with the same runtimes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimGroup {
    /// Runtimes of the tasks; `None` for any.
    pub runtimes: Option<Vec<String>>,
    /// The executor of each slot, in the order in which they are filled.
    pub executors: Vec<String>,
}

/// News of a store that managers share. A hint may be missed; whoever waits for it must also ask from time to
/// time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreHint {
    /// Tasks may have been queued.
    pub queued: bool,
    /// Running tasks may have been handed over.
    pub handed_over: bool,
}

/// Queue of the tasks that belong to nobody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueDepth {
    /// Tasks of each priority, counted up to a limit.
    pub waiting: [u64; 4],
    /// Time from which on the oldest has waited, in milliseconds of Unix time.
    pub oldest_ms: Option<u64>,
}
