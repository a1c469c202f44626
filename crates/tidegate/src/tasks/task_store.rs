use super::{
    Change, ChangeOutcome, Claim, Claimed, NewTask, QueueDepth, StoreHint, Submission, TaskPage,
    TaskQuery, TaskRecord,
};
use crate::storage::StoreError;
use std::time::Duration;
use tidegate_core::task::{OutputChunk, TaskId};

/// Event that a change must survive before it counts as persisted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The end of the process: enough where what the change is about ends with the process too.
    Process,
    /// A power cut.
    Power,
}

/// A store of tasks. Concurrent callers share the cost of making their changes durable.
///
/// One conformance suite runs on every implementation; `tests/tasks` has it.
pub trait TaskStore: Send + Sync + 'static {
    /// Persists a new task: once this returns `New`, a power cut does not lose it.
    ///
    /// # Errors
    ///
    /// When the store can't be written. The task may be persisted nevertheless; submitting it again finds out.
    fn submit(&self, task: NewTask) -> impl Future<Output = Result<Submission, StoreError>> + Send;

    /// Persists a step of a task, if it starts from the newest state.
    ///
    /// # Errors
    ///
    /// When the store can't be written. The step may be persisted nevertheless.
    fn persist(
        &self,
        change: Change,
        durability: Durability,
    ) -> impl Future<Output = Result<ChangeOutcome, StoreError>> + Send;

    /// Reads a task.
    ///
    /// # Errors
    ///
    /// When the store can't be read.
    fn get(
        &self,
        id: &TaskId,
    ) -> impl Future<Output = Result<Option<TaskRecord>, StoreError>> + Send;

    /// Output of a task, once it has ended.
    ///
    /// # Errors
    ///
    /// When the store can't be read.
    fn output(
        &self,
        id: &TaskId,
    ) -> impl Future<Output = Result<Option<Vec<OutputChunk>>, StoreError>> + Send;

    /// Tasks, the newest first.
    ///
    /// # Errors
    ///
    /// When the store can't be read.
    fn list(&self, query: &TaskQuery) -> impl Future<Output = Result<TaskPage, StoreError>> + Send;

    /// Number of tasks in each status, in the order of
    /// [`TaskStatus::ALL`](tidegate_core::task::TaskStatus).
    ///
    /// # Errors
    ///
    /// When the store can't be read.
    fn counts(&self) -> impl Future<Output = Result<[u64; 6], StoreError>> + Send;

    /// Marks a manager as alive for this time. Tasks of managers without a current mark may be
    /// [adopted](Self::adopt).
    ///
    /// # Errors
    ///
    /// When the store can't be written.
    fn beat(
        &self,
        owner: &str,
        ttl: Duration,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Takes over tasks that are not over and whose owner is gone, or is this manager from an earlier life: each
    /// is now this manager's by one more version of its state. The oldest first; call again until there are none.
    /// Without `others` only those of its earlier lives: after an outage of the store the marks of managers that
    /// live have run out as well. A folder has one manager, and everything in it is of an earlier life.
    ///
    /// # Errors
    ///
    /// When the store can't be written.
    fn adopt(
        &self,
        owner: &str,
        limit: usize,
        others: bool,
    ) -> impl Future<Output = Result<Vec<TaskRecord>, StoreError>> + Send;

    /// Claims queued tasks that belong to nobody, by priority and in the order of submission: each is now this
    /// manager's, at its next attempt, assigned to the executor of a slot. What another manager claims at the same
    /// time is left out. A folder has one manager, and no task without an owner.
    ///
    /// # Errors
    ///
    /// When the store can't be written. The claim may have been made nevertheless; one in
    /// [doubt](Claim::doubt) finds out.
    fn claim(&self, claim: Claim) -> impl Future<Output = Result<Claimed, StoreError>> + Send;

    /// Adopts queued tasks that belong to nobody, for a manager that keeps a queue of its own: the first of the
    /// queue. Call again until there are none. A folder has no task without an owner.
    ///
    /// # Errors
    ///
    /// When the store can't be written.
    fn adopt_queued(
        &self,
        owner: &str,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<TaskRecord>, StoreError>> + Send;

    /// Hands over this manager's tasks that these executors have, or may have: whoever knows the executors may
    /// [take them over](Self::take_over) at once. Returns how many. A folder has nobody to hand over to.
    ///
    /// # Errors
    ///
    /// When the store can't be written.
    fn hand_over(
        &self,
        owner: &str,
        executors: &[String],
    ) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Takes over tasks at these executors that another manager has handed over.
    ///
    /// # Errors
    ///
    /// When the store can't be written.
    fn take_over(
        &self,
        owner: &str,
        executors: &[String],
        limit: usize,
    ) -> impl Future<Output = Result<Vec<TaskRecord>, StoreError>> + Send;

    /// Waits for news of other managers. For one caller at a time. Nothing ever comes from a folder.
    fn hint(&self) -> impl Future<Output = StoreHint> + Send;

    /// Number of tasks that are claimed before this one, counted up to `ahead_max`; `None` when it does not wait
    /// for a claim.
    ///
    /// # Errors
    ///
    /// When the store can't be read.
    fn queue_position(
        &self,
        id: &TaskId,
        ahead_max: u64,
    ) -> impl Future<Output = Result<Option<u64>, StoreError>> + Send;

    /// Tasks that wait for a claim. Those of a priority are counted up to `count_max`.
    ///
    /// # Errors
    ///
    /// When the store can't be read.
    fn queue_depth(
        &self,
        count_max: u64,
    ) -> impl Future<Output = Result<QueueDepth, StoreError>> + Send;

    /// Deletes tasks that ended before this moment of Unix time, with what they wrote and their keys. At most so
    /// many at once; returns how many.
    ///
    /// # Errors
    ///
    /// When the store can't be written.
    fn forget(
        &self,
        ended_before_ms: u64,
        limit: usize,
    ) -> impl Future<Output = Result<u64, StoreError>> + Send;
}
