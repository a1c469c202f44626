use super::executor::Executor;
use crate::tasks::execution::StopReason;
use std::pin::pin;
use std::time::Duration;
use tokio::time::timeout;

/// Longest time from the stop signal to the end of an execution: a process gets a grace period after TERM.
const STOP_MAX: Duration = Duration::from_secs(15);

/// Result of a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Executions that were stopped after the grace period.
    pub stopped: usize,
    /// Stopped executions that did not end in time.
    pub left: usize,
}

// === impl Executor ===

impl Executor {
    /// Accepts nothing more, lets executions finish within the grace period, and stops the rest.
    ///
    /// # Cancel safety
    ///
    /// Dropped early, the executor still accepts nothing more, and executions continue.
    pub async fn drain(&self, grace: Duration) -> Drained {
        let state = self.state();
        let ends_at = state.now().saturating_add(grace);
        state.lock().ends_at = Some(ends_at);
        if timeout(grace, self.idle()).await.is_ok() {
            return Drained { stopped: 0, left: 0 };
        }
        let live = state.lock().live();
        for execution in &live {
            execution.stop(StopReason::Draining);
        }
        let _ = timeout(STOP_MAX, self.idle()).await;
        let left = live.iter().filter(|execution| !execution.has_ended()).count();
        Drained { stopped: live.len(), left }
    }

    async fn idle(&self) {
        let state = self.state();
        loop {
            let mut ended = pin!(state.ended.notified());
            // Registered before the check: no end is missed.
            ended.as_mut().enable();
            if state.lock().is_idle() {
                return;
            }
            ended.await;
        }
    }
}
