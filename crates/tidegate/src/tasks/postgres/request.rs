use super::adopt::{Adopt, Forget};
use super::hand_over::{HandOver, TakeOver};
use super::step::Step;
use super::submit::NewRow;
use crate::storage::StoreError;
use crate::tasks::{ChangeOutcome, Claim, Claimed, Submission, TaskRecord};
use tokio::sync::oneshot;

/// The sender of an answer. A caller that has left does not need it.
pub(super) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// A request to the writer.
pub(super) enum Request {
    Submit(Box<NewRow>, Reply<Submission>),
    Persist(Box<Step>, Reply<ChangeOutcome>),
    Claim(Claim, Reply<Claimed>),
    HandOver(HandOver, Reply<u64>),
    TakeOver(TakeOver, Reply<Vec<TaskRecord>>),
    Adopt(Adopt, Reply<Vec<TaskRecord>>),
    Forget(Forget, Reply<u64>),
}
