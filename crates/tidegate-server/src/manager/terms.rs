use std::time::Duration;
use tidegate::capacity::Placement;
use tidegate::task::TaskLimits;

/// By which terms a manager works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagerTerms {
    /// Its name among those that share a store.
    pub owner: String,
    /// Whether other managers use the same store.
    pub shared_store: bool,
    /// How waiting tasks come to slots.
    pub placement: Placement,
    /// How long an executor keeps an execution of which nobody asks, 1 s … 10 min. Default 15 s. What is lost is
    /// tried again after that.
    pub lease: Duration,
    /// Tasks that may wait or run at once. Default 100,000.
    pub tasks_max: usize,
    /// What they may hold in memory. Default 256 MiB.
    pub memory_bytes: usize,
    /// What a task may ask for.
    pub limits: TaskLimits,
    /// How often executors are asked how full they are. Default 1 s.
    pub probe_every: Duration,
    /// How long tasks are kept that are over. Default a week.
    pub retention: Duration,
    /// The most output of one attempt that is kept. Default 1 MiB.
    pub output_bytes_max: usize,
}

// === impl ManagerTerms ===

impl Default for ManagerTerms {
    fn default() -> Self {
        Self {
            owner: "local".to_owned(),
            shared_store: false,
            placement: Placement::default(),
            lease: Duration::from_secs(15),
            tasks_max: 100_000,
            memory_bytes: 256 << 20,
            limits: TaskLimits::default(),
            probe_every: Duration::from_secs(1),
            retention: Duration::from_secs(7 * 24 * 3_600),
            output_bytes_max: 1 << 20,
        }
    }
}
