use super::execution::Execution;
use super::executor::Executor;
use crate::tasks::execution::{ExecutionState, ExecutionView};
use std::pin::pin;
use tidegate::task::ExecutionKey;

/// Version of an execution that an observer has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    state: Option<ExecutionState>,
    output: u64,
    progress: u64,
}

// === impl Seen ===

impl Seen {
    /// Nothing: every execution differs from it.
    #[must_use]
    pub const fn nothing() -> Self {
        Self { state: None, output: 0, progress: 0 }
    }

    /// An execution that has just started.
    #[must_use]
    pub const fn started() -> Self {
        Self { state: Some(ExecutionState::Starting), output: 0, progress: 0 }
    }

    /// True when the execution has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        !matches!(self.state, None | Some(ExecutionState::Starting | ExecutionState::Running))
    }
}

// === impl Executor ===

impl Executor {
    /// Waits until an execution differs from what was seen, and returns what it is now; `None` when it is unknown
    /// or forgotten. Unlike [`execution`](Self::execution) it renews no lease.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: call again with the same value.
    pub async fn observe(&self, key: &ExecutionKey, seen: Seen) -> Option<Seen> {
        let execution = self.state().lock().known.get(key).cloned()?;
        Some(execution.differs_from(seen).await)
    }

    /// State and output of an execution now, without a renewal of its lease; `None` when it is unknown.
    #[must_use]
    pub fn peek(&self, key: &ExecutionKey, after: u64) -> Option<ExecutionView> {
        let execution = self.state().lock().known.get(key).cloned()?;
        Some(execution.view(after))
    }

    /// Renews the lease of an execution, unless `fence` is another's. False when the execution is unknown.
    #[must_use]
    pub fn renew(&self, key: &ExecutionKey, fence: Option<u64>) -> bool {
        self.state().renew(key, fence).is_some()
    }
}

// === impl Execution ===

impl Execution {
    async fn differs_from(&self, seen: Seen) -> Seen {
        loop {
            let mut changed = pin!(self.sink.log().changed());
            // Registered before the check: no change is missed.
            changed.as_mut().enable();
            let now = self.version();
            if now != seen {
                return now;
            }
            tokio::select! {
                () = &mut changed => {}
                progress = self.progress.changed(seen.progress) => {
                    // Closed: only the end is to come.
                    if progress.version == seen.progress {
                        changed.await;
                    }
                }
            }
        }
    }

    fn version(&self) -> Seen {
        Seen {
            state: Some(self.state()),
            output: self.sink.log().bytes() as u64,
            progress: self.progress.version(),
        }
    }
}
