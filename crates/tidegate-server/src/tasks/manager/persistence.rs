use std::time::Duration;
use tidegate::store::StoreError;
use tidegate::task::{OutputChunk, TaskId, TaskState};
use tidegate::tasks::{Change, ChangeOutcome, Durability, TaskStore};
use tokio::time::sleep;

const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Result of persisting a state of a task.
pub(super) enum Persisted {
    /// The store has the state.
    Yes,
    /// The store has a newer state of another writer: this one.
    Overtaken(Option<Box<TaskState>>),
    /// The store failed in every try.
    Failed(String),
}

/// Persists a state, with retries while the store is unavailable: at most `tries`, or without a bound with `None`.
/// A failed try may have been persisted; the next one then finds the very state that it wants to write.
pub(super) async fn persist<S: TaskStore>(
    store: &S,
    id: &TaskId,
    state: &TaskState,
    mut output: Option<Vec<OutputChunk>>,
    durability: Durability,
    tries: Option<u32>,
) -> Persisted {
    let mut pause = PAUSE_FIRST;
    let mut tried = 0;
    loop {
        let change = Change { id: id.clone(), state: state.clone(), output: output.clone() };
        match store.persist(change, durability).await {
            Ok(ChangeOutcome::Yes) => return Persisted::Yes,
            Ok(ChangeOutcome::Conflict(Some(stored))) if stored == *state => return Persisted::Yes,
            Ok(ChangeOutcome::Conflict(stored)) => {
                return Persisted::Overtaken(stored.map(Box::new));
            }
            // Permanent: better without its output than not at all.
            Err(StoreError::Refused(why)) => {
                tracing::error!(task = %id, why, "the store refuses a state of a task");
                if output.take().is_none() {
                    return Persisted::Failed(why);
                }
            }
            Err(error) => {
                tried += 1;
                tracing::warn!(task = %id, %error, tried, "can't persist a state of a task");
                if tries.is_some_and(|tries| tried >= tries) {
                    return Persisted::Failed(error.to_string());
                }
            }
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}
