use std::time::Duration;

/// What came of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutorsReport {
    /// How many tasks arrived.
    pub tasks: u64,
    /// How many of them an executor had accepted when the last arrived.
    pub started: u64,
    /// How many submissions were refused because the executor was full.
    pub wasted: u64,
    /// How many requests and replies there were.
    pub messages: u64,
    /// The mean of the time from a task's arrival to its start, in milliseconds; who has not started counts with
    /// what it has waited so far.
    pub wait_mean_ms: f64,
    /// 99 % of tasks waited at most this long, in milliseconds.
    pub wait_p99_ms: f64,
    /// Of the time of all slots, the share in which they worked.
    pub used: f64,
    /// How long after the burst nobody waited any more; `None` without a burst, or when somebody always did.
    pub recovered: Option<Duration>,
    /// Of those who were told that they would wait, how long they did, as a multiple of what they were told: at
    /// the tenth, the fiftieth and the ninetieth percentile.
    pub came_per_told: [Option<f64>; 3],
}

// === impl ExecutorsReport ===

impl ExecutorsReport {
    /// Refused submissions for each task that started.
    #[must_use]
    pub fn wasted_per_task(&self) -> f64 {
        self.wasted as f64 / self.started.max(1) as f64
    }

    /// Requests and replies for each task that started.
    #[must_use]
    pub fn messages_per_task(&self) -> f64 {
        self.messages as f64 / self.started.max(1) as f64
    }

    /// Of the tasks, the share that started.
    #[must_use]
    pub fn goodput(&self) -> f64 {
        self.started as f64 / self.tasks.max(1) as f64
    }
}
