use super::response::{ExecutorResponse, PollResponse};
use crate::tasks::execution::{CapacityReport, ExecuteBody, ExecutionQuery, ReserveBody};
use crate::tasks::manager::sessions::{Asked, ToWorker, Told, Waited, WorkerHub, WorkerSession};
use crate::tasks::session::AnswerResult;
use std::sync::Arc;
use std::time::Duration;
use tidegate::task::ExecutionKey;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Longest time to an answer of a worker.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Link to a worker that has dialled this manager.
pub struct SessionLink {
    hub: Arc<WorkerHub>,
    session: Arc<WorkerSession>,
}

// === impl SessionLink ===

impl SessionLink {
    /// A link to that worker, connected or not.
    pub(super) fn new(hub: Arc<WorkerHub>, session: Arc<WorkerSession>) -> Self {
        Self { hub, session }
    }

    pub(super) fn is_of(&self, session: &Arc<WorkerSession>) -> bool {
        Arc::ptr_eq(&self.session, session)
    }

    pub(super) fn capacity(&self) -> Result<CapacityReport, String> {
        self.session.capacity().ok_or_else(|| "the worker is not connected".to_owned())
    }

    pub(super) async fn execute(&self, body: &ExecuteBody) -> ExecutorResponse<u64> {
        let id = format!("{}@{}", body.eval_id, body.attempt);
        let Ok(key) = id.parse::<ExecutionKey>() else {
            return ExecutorResponse::Rejected(format!("{id:?} can't name an execution"));
        };
        self.session.begin_dispatch(&key);
        let response = match self.dispatch(&id, ToWorker::Execute(body.clone())).await {
            Ok(AnswerResult::Started { fence }) => ExecutorResponse::Accepted(fence),
            Ok(other) => refusal(other),
            Err(response) => response,
        };
        // The poll that follows the first two goes on with what has arrived.
        match &response {
            ExecutorResponse::Accepted(fence) => self.session.end_dispatch(&key, Some(*fence)),
            ExecutorResponse::Unknown(_) => self.session.end_dispatch(&key, None),
            _ => self.session.unfollow(&key),
        }
        response
    }

    pub(super) async fn reserve(&self, body: &ReserveBody) -> ExecutorResponse<String> {
        let id = format!("{}@{}", body.eval_id, body.attempt);
        match self.dispatch(&id, ToWorker::Reserve(body.clone())).await {
            Ok(AnswerResult::Reserved { reservation_id }) => {
                ExecutorResponse::Accepted(reservation_id)
            }
            Ok(other) => refusal(other),
            Err(response) => response,
        }
    }

    async fn dispatch<T>(
        &self,
        id: &str,
        message: ToWorker,
    ) -> Result<AnswerResult, ExecutorResponse<T>> {
        let answer = self.session.ask(Asked::Dispatch, id);
        match self.hub.tell(self.session.name(), message).await {
            Told::Sent => {}
            Told::Unsent => return Err(ExecutorResponse::Unreachable),
            Told::Unknown(why) => return Err(ExecutorResponse::Unknown(why)),
        }
        answered(answer).await.map_err(ExecutorResponse::Unknown)
    }

    /// Waits for news that the worker pushes. Progress has a path of its own. Also renews the execution's lease:
    /// for as long as it is followed.
    pub(super) async fn poll(&self, key: &ExecutionKey, query: &ExecutionQuery) -> PollResponse {
        let ExecutionQuery { wait, after, fence, .. } = *query;
        if let Some(interest) = self.session.follow(key, fence, after) {
            self.hub.queue(self.session.name(), ToWorker::Renew(vec![interest]));
        }
        match self.session.wait_for(key, wait, after).await {
            Waited::View(view) => PollResponse::View(view),
            Waited::Unknown => PollResponse::NotFound,
            Waited::NoContact => PollResponse::NoResponse("no contact with the worker".to_owned()),
        }
    }

    pub(super) async fn cancel(&self, key: &ExecutionKey) -> bool {
        let id = key.to_string();
        let answer = self.session.ask(Asked::Cancel, &id);
        match self.hub.tell(self.session.name(), ToWorker::Cancel(id)).await {
            Told::Sent => answered(answer).await.is_ok(),
            Told::Unsent | Told::Unknown(_) => false,
        }
    }

    pub(super) fn unfollow(&self, key: &ExecutionKey) {
        self.session.unfollow(key);
    }

    pub(super) fn acknowledge(&self, key: &ExecutionKey) {
        self.session.acknowledge(key);
    }
}

async fn answered(answer: oneshot::Receiver<AnswerResult>) -> Result<AnswerResult, String> {
    match timeout(ANSWER_TIMEOUT, answer).await {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(_)) => Err("the session ended before the answer".to_owned()),
        Err(_) => Err("no answer in time".to_owned()),
    }
}

fn refusal<T>(result: AnswerResult) -> ExecutorResponse<T> {
    match result {
        AnswerResult::Full { retry_after_ms } => {
            ExecutorResponse::Full { retry_after: Duration::from_millis(retry_after_ms) }
        }
        AnswerResult::Gone => ExecutorResponse::Gone,
        AnswerResult::Rejected { why } => ExecutorResponse::Rejected(why),
        other => ExecutorResponse::Unknown(format!("unexpected answer: {other:?}")),
    }
}
