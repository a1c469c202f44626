use super::{Change, ChangeOutcome, NewTask, Submission, TaskPage, TaskQuery, TaskRecord};
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
    ///
    /// # Errors
    ///
    /// When the store can't be written.
    fn adopt(
        &self,
        owner: &str,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<TaskRecord>, StoreError>> + Send;

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
