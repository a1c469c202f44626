use std::time::Duration;
use tidegate::store::StoreError;
use tidegate::task::{OutputChunk, TaskId, TaskState};
use tidegate::tasks::{Change, Durability, Kept, TaskStore};
use tokio::time::sleep;

const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Whether a step of a task is kept.
pub(super) enum Step {
    /// It is.
    Kept,
    /// Somebody else took a step before: this is where the task stands.
    Overtaken(Option<TaskState>),
    /// The store failed as often as was to be tried.
    Failed(String),
}

/// Keeps a step, trying again while the store can't be used: `tries` times, or for ever with `None`. A try that
/// failed may have been kept; the next one then finds the very state that it wants to keep.
pub(super) async fn keep<S: TaskStore>(
    store: &S,
    id: &TaskId,
    state: &TaskState,
    mut output: Option<Vec<OutputChunk>>,
    durability: Durability,
    tries: Option<u32>,
) -> Step {
    let mut pause = PAUSE_FIRST;
    let mut tried = 0;
    loop {
        let change = Change { id: id.clone(), state: state.clone(), output: output.clone() };
        match store.keep(change, durability).await {
            Ok(Kept::Yes) => return Step::Kept,
            Ok(Kept::Conflict(Some(there))) if there == *state => return Step::Kept,
            Ok(Kept::Conflict(there)) => return Step::Overtaken(there),
            // It will never be taken as it is. Better without its output than not at all.
            Err(StoreError::Refused(why)) => {
                tracing::error!(task = %id, why, "the store refuses a step of a task");
                if output.take().is_none() {
                    return Step::Failed(why);
                }
            }
            Err(error) => {
                tried += 1;
                tracing::warn!(task = %id, %error, tried, "a step of a task could not be kept");
                if tries.is_some_and(|tries| tried >= tries) {
                    return Step::Failed(error.to_string());
                }
            }
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}
