use super::Executor;
use super::work::StopWhy;
use std::pin::pin;
use std::time::Duration;
use tokio::time::timeout;

/// How long executions may take to stop once they are told to: a process is given time after TERM.
const STOP_MAX: Duration = Duration::from_secs(15);

/// How an executor's last moments went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Executions that had to be stopped.
    pub stopped: usize,
    /// Of those, the ones that did not.
    pub left: usize,
}

// === impl Executor ===

impl Executor {
    /// Takes nothing more, lets what runs finish within the grace, and stops what is left then.
    ///
    /// # Cancel safety
    ///
    /// Given up, it still takes nothing more, and what runs goes on.
    pub async fn drain(&self, grace: Duration) -> Drained {
        let shared = self.shared();
        let ends_at = shared.now().saturating_add(grace);
        shared.lock().ends_at = Some(ends_at);
        if timeout(grace, self.idle()).await.is_ok() {
            return Drained { stopped: 0, left: 0 };
        }
        let live = shared.lock().live();
        for execution in &live {
            execution.stop(StopWhy::Draining);
        }
        let _ = timeout(STOP_MAX, self.idle()).await;
        let left = live.iter().filter(|execution| !execution.has_ended()).count();
        Drained { stopped: live.len(), left }
    }

    async fn idle(&self) {
        let shared = self.shared();
        loop {
            let mut ended = pin!(shared.ended.notified());
            // From here on no end is missed.
            ended.as_mut().enable();
            if shared.lock().is_idle() {
                return;
            }
            ended.await;
        }
    }
}
