use std::collections::HashMap;
use tidegate::capacity::Claims;
use tidegate::task::TaskId;
use tidegate::tasks::{ClaimGroup, QueueDepth, TaskRecord};
use tokio::time::Instant;

/// This manager's part in a queue that belongs to nobody: its claims, and what it knows of the queue.
#[derive(Default)]
pub(super) struct SharedQueue {
    pub(super) claims: Claims,
    /// Slots of the claim under way.
    groups: Vec<ClaimGroup>,
    /// Tasks that were claimed again before the end of their last attempt here was taken in.
    early: HashMap<TaskId, TaskRecord>,
    /// The queue, and all tasks that are not over, as last read.
    pub(super) depth: QueueDepth,
    live: u64,
    /// Submissions of this manager since then.
    submitted: u64,
    /// Claims that are being given back.
    pub(super) giving_back: usize,
    pub(super) drain: Drain,
}

/// Progress of handing over what runs when the manager shuts down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Drain {
    #[default]
    Serving,
    /// Attempts may still be on their way to executors.
    Since(Instant),
    /// The store has been asked.
    HandingOver,
    /// The others have what they can follow.
    HandedOver,
}

// === impl SharedQueue ===

impl SharedQueue {
    /// Notes the slots of the claim under way.
    pub(super) fn begin(&mut self, groups: Vec<ClaimGroup>) {
        self.groups = groups;
    }

    /// Number of tasks that each group of the claim has got.
    pub(super) fn counts(&self, records: &[TaskRecord]) -> Vec<usize> {
        let of_group = |group: &ClaimGroup| {
            let got = records.iter().filter_map(|record| record.state.assignment.as_ref());
            got.filter(|got| group.executors.iter().any(|name| **name == *got.executor)).count()
        };
        self.groups.iter().map(of_group).collect()
    }

    /// Keeps a task until the end of its last attempt here is taken in.
    pub(super) fn keep(&mut self, record: TaskRecord) {
        self.early.insert(record.id.clone(), record);
    }

    /// Returns a task that was kept.
    pub(super) fn kept(&mut self, id: &TaskId) -> Option<TaskRecord> {
        self.early.remove(id)
    }

    /// Notes a submission.
    pub(super) fn submitted(&mut self) {
        self.claims.hint();
        self.submitted += 1;
    }

    /// Takes in what was read of the queue.
    pub(super) fn read(&mut self, depth: QueueDepth, live: u64) {
        (self.depth, self.live, self.submitted) = (depth, live, 0);
    }

    /// Tasks of all managers that are not over, as far as known.
    pub(super) fn live(&self) -> u64 {
        self.live + self.submitted
    }
}
