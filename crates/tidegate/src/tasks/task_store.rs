use super::{Change, Kept, NewTask, Submission, TaskPage, TaskQuery, TaskRecord};
use crate::store::StoreError;
use std::time::Duration;
use tidegate_core::task::{OutputChunk, TaskId};

/// What a change must survive before it counts as kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The end of the process: enough where what the change is about ends with the process too.
    Process,
    /// A power cut.
    Power,
}

/// Where tasks are kept. Many callers at once share the cost of making their changes durable.
///
/// One conformance suite runs on every implementation; `tests/tasks` has it.
pub trait TaskStore: Send + Sync + 'static {
    /// Keeps a new task: when this returns `New`, a power cut does not lose it.
    ///
    /// # Errors
    ///
    /// When the store can't be written. The task may be kept all the same; submitting it again finds out.
    fn submit(&self, task: NewTask) -> impl Future<Output = Result<Submission, StoreError>> + Send;

    /// Keeps a step of a task, if it starts from the newest state.
    ///
    /// # Errors
    ///
    /// When the store can't be written. It may be kept all the same.
    fn keep(
        &self,
        change: Change,
        durability: Durability,
    ) -> impl Future<Output = Result<Kept, StoreError>> + Send;

    /// A task.
    ///
    /// # Errors
    ///
    /// When the store can't be read.
    fn get(
        &self,
        id: &TaskId,
    ) -> impl Future<Output = Result<Option<TaskRecord>, StoreError>> + Send;

    /// What a task wrote, once it is over.
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

    /// How many tasks there are in each status, in the order of
    /// [`TaskStatus::ALL`](tidegate_core::task::TaskStatus).
    ///
    /// # Errors
    ///
    /// When the store can't be read.
    fn counts(&self) -> impl Future<Output = Result<[u64; 6], StoreError>> + Send;

    /// Says that a manager is alive, for so long. Tasks of managers that have not said so in time may be
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
