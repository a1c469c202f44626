use super::shared::Shared;
use crate::tasks::execution::{ExecuteBody, ReserveBody};
use crate::tasks::executor::{ExecuteError, ReserveError, Seen};
use crate::tasks::session::{
    Answer, AnswerResult, Dispatch, FrameReader, FrameWriter, Interest, SessionError, WorkerState,
    decode,
};
use std::sync::Arc;
use std::time::Duration;
use tidegate::capacity::{ExecuteRefused, ReserveRefused};
use tidegate::frame::{FrameKind, RawFrame};
use tidegate::task::ExecutionKey;
use tokio::time::timeout;

/// Retry advice of a worker that is overloaded by dispatches.
const OVERLOADED: Duration = Duration::from_millis(50);

/// Does what the manager says on the control connection, until the connection ends.
///
/// Every frame is answered before the next one is read, and each answer is decided without waiting.
pub(super) async fn obey(
    shared: &Arc<Shared>,
    reader: &mut FrameReader,
    writer: &mut FrameWriter,
    silence_max: Duration,
) -> Result<(), SessionError> {
    let mut draining = shared.draining.subscribe();
    loop {
        let state = tokio::select! {
            frame = timeout(silence_max, reader.next()) => match frame {
                Ok(frame) => take_frame(shared, &frame?)?,
                Err(_) => return Err(SessionError::Timeout(silence_max)),
            },
            _ = draining.changed() => {
                WorkerState { answers: Vec::new(), capacity: Some(shared.executor.capacity()) }
            }
        };
        writer.send(FrameKind::State, &state).await?;
    }
}

fn take_frame(shared: &Arc<Shared>, frame: &RawFrame) -> Result<WorkerState, SessionError> {
    let mut state = WorkerState::default();
    match frame.kind {
        FrameKind::Execute => {
            let Dispatch { executes, reserves } = decode(frame)?;
            // One permit for each until all are answered.
            let mut permits = Vec::new();
            let mut admit = || {
                let permit = shared.tracker.try_acquire(frame.class.priority());
                permit.map(|permit| permits.push(permit)).is_ok()
            };
            for body in executes {
                let id = id_of(&body.eval_id, body.attempt);
                let result = if admit() { execute(shared, body) } else { overloaded() };
                state.answers.push(Answer { id, result });
            }
            for body in reserves {
                let id = id_of(&body.eval_id, body.attempt);
                let result = if admit() { reserve(shared, &body) } else { overloaded() };
                state.answers.push(Answer { id, result });
            }
        }
        FrameKind::Cancel => {
            // Critical: it frees capacity, and is never refused.
            let _permit = shared.tracker.try_acquire(frame.class.priority());
            for id in decode::<Vec<String>>(frame)? {
                if let Ok(key) = id.parse::<ExecutionKey>() {
                    shared.executor.cancel(&key);
                }
                state.answers.push(Answer { id, result: AnswerResult::Cancelled });
            }
        }
        FrameKind::Lease => {
            let _permit = shared.tracker.try_acquire(frame.class.priority());
            for interest in decode::<Vec<Interest>>(frame)? {
                if !renew(shared, &interest) {
                    let result = AnswerResult::Unknown;
                    state.answers.push(Answer { id: interest.id, result });
                }
            }
            state.capacity = Some(shared.executor.capacity());
        }
        given => {
            return Err(SessionError::Unexpected { given, expected: "execute, cancel or lease" });
        }
    }
    Ok(state)
}

fn execute(shared: &Arc<Shared>, body: ExecuteBody) -> AnswerResult {
    match shared.executor.execute(body) {
        Ok(started) => {
            if let Ok(key) = started.container_id.parse::<ExecutionKey>() {
                follow(shared, &key, 0, Seen::started());
            }
            AnswerResult::Started { fence: started.fence }
        }
        Err(ExecuteError::Full { retry_after } | ExecuteError::Draining { retry_after }) => {
            full(retry_after)
        }
        Err(ExecuteError::Refused(ExecuteRefused::Gone | ExecuteRefused::Cancelled)) => {
            AnswerResult::Gone
        }
        Err(error) => AnswerResult::Rejected { why: error.to_string() },
    }
}

fn reserve(shared: &Arc<Shared>, body: &ReserveBody) -> AnswerResult {
    match shared.executor.reserve(body) {
        Ok(reserved) => AnswerResult::Reserved { reservation_id: reserved.reservation_id },
        Err(ReserveError::Full { retry_after } | ReserveError::Draining { retry_after }) => {
            full(retry_after)
        }
        Err(ReserveError::Refused(ReserveRefused::Cancelled)) => AnswerResult::Gone,
        Err(error) => AnswerResult::Rejected { why: error.to_string() },
    }
}

fn id_of(task: &str, attempt: u32) -> String {
    format!("{task}@{attempt}")
}

fn full(retry_after: Duration) -> AnswerResult {
    let retry_after_ms = u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX);
    AnswerResult::Full { retry_after_ms }
}

fn overloaded() -> AnswerResult {
    full(OVERLOADED)
}

/// Renews a lease, and reports the execution from now on. False when it is unknown.
fn renew(shared: &Arc<Shared>, interest: &Interest) -> bool {
    let Ok(key) = interest.id.parse::<ExecutionKey>() else { return false };
    if !shared.executor.renew(&key, interest.fence) {
        return false;
    }
    follow(shared, &key, interest.after, Seen::nothing());
    true
}

/// Follows an execution: each change marks it.
fn follow(shared: &Arc<Shared>, key: &ExecutionKey, after: u64, seen: Seen) {
    let lacks_output = shared.followed.follow(key, after, || {
        let (shared, key) = (Arc::clone(shared), key.clone());
        tokio::spawn(watch(shared, key, seen)).abort_handle()
    });
    if lacks_output {
        shared.followed.mark(key, false, shared.level(), shared.now());
    }
}

async fn watch(shared: Arc<Shared>, key: ExecutionKey, mut seen: Seen) {
    while let Some(now) = shared.executor.observe(&key, seen).await {
        seen = now;
        let is_end = seen.has_ended();
        if shared.followed.mark(&key, is_end, shared.level(), shared.now()) {
            shared.queue_update(key.clone(), true);
        }
        if is_end {
            return;
        }
    }
}
