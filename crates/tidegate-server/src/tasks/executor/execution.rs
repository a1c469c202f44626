use crate::tasks::execution::{
    ExecutionQuery, ExecutionState, ExecutionView, OutputSink, ProgressSink, StopReason, StopSwitch,
};
use std::pin::pin;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tidegate::task::{Ending, ExecutionKey, TaskOutcome};
use tokio::time::Instant;

/// One execution that the executor remembers, from its grant on.
#[derive(Debug)]
pub(super) struct Execution {
    pub(super) key: ExecutionKey,
    pub(super) fence: u64,
    pub(super) lease: Option<Duration>,
    pub(super) sink: OutputSink,
    pub(super) progress: ProgressSink,
    switch: StopSwitch,
    granted: Instant,
    running: AtomicBool,
    ended: OnceLock<Ending>,
}

// === impl Execution ===

impl Execution {
    pub(super) fn new(
        key: ExecutionKey,
        fence: u64,
        lease: Option<Duration>,
        output_bytes_max: usize,
        switch: StopSwitch,
    ) -> Self {
        Self {
            key,
            fence,
            lease,
            sink: OutputSink::new(output_bytes_max),
            progress: ProgressSink::new(),
            switch,
            granted: Instant::now(),
            running: AtomicBool::new(false),
            ended: OnceLock::new(),
        }
    }

    pub(super) fn set_running(&self) {
        self.running.store(true, Ordering::Release);
        self.notify();
    }

    /// Sets the ending; the first one stays.
    pub(super) fn set_ended(&self, ending: Ending) {
        let _ = self.ended.set(ending);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.get().is_some()
    }

    pub(super) fn ran(&self) -> Duration {
        self.granted.elapsed()
    }

    pub(super) fn stop(&self, reason: StopReason) {
        self.switch.stop(reason);
    }

    /// Wakes the waiters of [`changed`](Self::changed).
    pub(super) fn notify(&self) {
        self.sink.log().notify();
    }

    /// Approximate memory that it takes after its end, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let output = self.sink.log().bytes() + self.progress.bytes();
        output + self.ended.get().map_or(0, |ending| ending.message.len())
    }

    /// Drops output and progress to free memory.
    pub(super) fn discard(&self) {
        self.sink.log().discard();
        self.progress.discard();
    }

    pub(super) fn state(&self) -> ExecutionState {
        self.state_with(self.ended.get())
    }

    fn state_with(&self, ended: Option<&Ending>) -> ExecutionState {
        match ended.map(|ending| ending.outcome) {
            Some(TaskOutcome::Succeeded) => ExecutionState::Succeeded,
            Some(TaskOutcome::Failed) => ExecutionState::Failed,
            Some(TaskOutcome::Cancelled) => ExecutionState::Cancelled,
            None if self.running.load(Ordering::Acquire) => ExecutionState::Running,
            None => ExecutionState::Starting,
        }
    }

    /// Waits for another state than now, or output or progress after those of the query. Returns at once after its
    /// end. Cancel safe.
    pub(super) async fn changed(&self, query: &ExecutionQuery) {
        let progress = async {
            match query.progress {
                Some(version) => drop(self.progress.changed(version).await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.state_or_output(query.after) => {}
            () = progress => {}
        }
    }

    async fn state_or_output(&self, after: u64) {
        let before = self.state();
        loop {
            let mut changed = pin!(self.sink.log().changed());
            // Registered before the check: no change is missed.
            changed.as_mut().enable();
            let written = self.sink.log().bytes() as u64;
            if self.has_ended() || self.state() != before || written > after {
                return;
            }
            changed.await;
        }
    }

    pub(super) fn view(&self, after: u64) -> ExecutionView {
        // Read before the output: an ended execution writes no more, so an ending comes with all of its output.
        let ended = self.ended.get();
        let page = self.sink.log().page_after(after);
        let progress = self.progress.snapshot();
        let ran_ms = u64::try_from(self.ran().as_millis()).unwrap_or(u64::MAX);
        ExecutionView {
            id: self.key.to_string(),
            eval_id: self.key.task.to_string(),
            attempt: self.key.attempt,
            fence: self.fence,
            state: self.state_with(ended),
            reason: ended.map(|ending| ending.reason),
            exit_code: ended.and_then(|ending| ending.exit_code),
            message: ended.map(|ending| ending.message.clone()).unwrap_or_default(),
            stopped: ended.map(|ending| ending.stopped.clone()).unwrap_or_default(),
            ran_ms: ended.map_or(ran_ms, |ending| ending.ran_ms),
            output: page.chunks,
            next: page.next,
            output_cut: page.cut,
            progress: Some(progress.progress).filter(|progress| !progress.is_empty()),
            progress_version: progress.version,
            progress_ignored: progress.ignored,
        }
    }
}
