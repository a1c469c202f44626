use super::env_key::EnvKey;
use std::sync::Arc;
use std::time::Duration;
use tidegate::capacity::Placement;
use tidegate::task::TaskLimits;

/// Settings of a manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagerSettings {
    /// Name among the managers that share a store.
    pub owner: String,
    /// Other managers use the same store.
    pub shared_store: bool,
    /// Queued tasks of the store belong to nobody, and this manager claims some for its free slots. Else it owns
    /// what was submitted to it, and keeps its own queue.
    pub claims: bool,
    /// Strategy by which queued tasks get slots.
    pub placement: Placement,
    /// Lease of an execution, 1 s … 10 min: the executor stops an execution of which nobody asks for so long, and
    /// the manager then retries it. Default 15 s.
    pub lease: Duration,
    /// Most tasks that wait or run at once. Default 100,000.
    pub tasks_max: usize,
    /// Most memory of those tasks, in bytes. Default 256 MiB.
    pub memory_bytes: usize,
    /// Limits of a task.
    pub limits: TaskLimits,
    /// Interval of capacity probes of executors. Default 1 s.
    pub probe_every: Duration,
    /// Time until ended tasks are deleted. Default 1 week.
    pub retention: Duration,
    /// Most output stored per attempt, in bytes. Default 1 MiB.
    pub output_bytes_max: usize,
    /// Key that seals the values of tasks' environments in the store. Default none: they are stored as they are.
    pub env_key: Option<Arc<EnvKey>>,
}

// === impl ManagerSettings ===

impl Default for ManagerSettings {
    fn default() -> Self {
        Self {
            owner: "local".to_owned(),
            shared_store: false,
            claims: false,
            placement: Placement::default(),
            lease: Duration::from_secs(15),
            tasks_max: 100_000,
            memory_bytes: 256 << 20,
            limits: TaskLimits::default(),
            probe_every: Duration::from_secs(1),
            retention: Duration::from_secs(7 * 24 * 3_600),
            output_bytes_max: 1 << 20,
            env_key: None,
        }
    }
}
