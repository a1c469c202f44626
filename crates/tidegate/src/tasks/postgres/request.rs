use super::adopt::{Adopt, Forget};
use super::step::Step;
use super::submit::NewRow;
use crate::storage::StoreError;
use crate::tasks::{ChangeOutcome, Submission, TaskRecord};
use tokio::sync::oneshot;

/// The sender of an answer. A caller that has left does not need it.
pub(super) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// A request to the writer.
pub(super) enum Request {
    Submit(Box<NewRow>, Reply<Submission>),
    Persist(Box<Step>, Reply<ChangeOutcome>),
    Adopt(Adopt, Reply<Vec<TaskRecord>>),
    Forget(Forget, Reply<u64>),
}
