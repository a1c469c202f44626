use std::time::Duration;

/// The results of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutorsReport {
    /// Tasks that arrived.
    pub tasks: u64,
    /// Tasks of these that an executor had accepted when the last arrived.
    pub started: u64,
    /// Submissions that a full executor refused.
    pub wasted: u64,
    /// Requests and replies.
    pub messages: u64,
    /// The mean time from a task's arrival to its start, in milliseconds; a task that has not started counts with
    /// its wait so far.
    pub wait_mean_ms: f64,
    /// 99 % of tasks waited at most this long, in milliseconds.
    pub wait_p99_ms: f64,
    /// The share of slot time in use.
    pub used: f64,
    /// The time after the burst until the queue was empty; `None` without a burst, or when it never was.
    pub recovered: Option<Duration>,
    /// The actual wait as a multiple of the estimated one, of tasks with an estimate: the 10th, 50th and 90th
    /// percentile.
    pub wait_per_estimate: [Option<f64>; 3],
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

    /// The share of tasks that started.
    #[must_use]
    pub fn goodput(&self) -> f64 {
        self.started as f64 / self.tasks.max(1) as f64
    }
}
