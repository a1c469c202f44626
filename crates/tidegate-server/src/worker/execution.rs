use super::work::{StopSwitch, StopWhy};
use super::{ExecutionState, ExecutionView, OutputSink};
use std::pin::pin;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tidegate::task::{Ending, ExecutionKey, Outcome};
use tokio::time::Instant;

/// One execution, from its grant until it is forgotten.
#[derive(Debug)]
pub(super) struct Execution {
    pub(super) key: ExecutionKey,
    pub(super) fence: u64,
    pub(super) lease: Option<Duration>,
    pub(super) sink: OutputSink,
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
            switch,
            granted: Instant::now(),
            running: AtomicBool::new(false),
            ended: OnceLock::new(),
        }
    }

    pub(super) fn set_running(&self) {
        self.running.store(true, Ordering::Release);
        self.tell();
    }

    /// The first ending stays.
    pub(super) fn set_ended(&self, ending: Ending) {
        let _ = self.ended.set(ending);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.get().is_some()
    }

    pub(super) fn ran(&self) -> Duration {
        self.granted.elapsed()
    }

    pub(super) fn stop(&self, why: StopWhy) {
        self.switch.stop(why);
    }

    /// Wakes whoever waits for news.
    pub(super) fn tell(&self) {
        self.sink.log().changed.notify_waiters();
    }

    /// What it holds in memory once it is over, about.
    pub(super) fn bytes(&self) -> usize {
        self.sink.log().bytes() + self.ended.get().map_or(0, |ending| ending.message.len())
    }

    pub(super) fn state(&self) -> ExecutionState {
        self.state_with(self.ended.get())
    }

    fn state_with(&self, ended: Option<&Ending>) -> ExecutionState {
        match ended.map(|ending| ending.outcome) {
            Some(Outcome::Succeeded) => ExecutionState::Succeeded,
            Some(Outcome::Failed) => ExecutionState::Failed,
            Some(Outcome::Cancelled) => ExecutionState::Cancelled,
            None if self.running.load(Ordering::Acquire) => ExecutionState::Running,
            None => ExecutionState::Starting,
        }
    }

    /// Waits until there is something to tell: another state than now, or output after that place. At once when it
    /// is over. Cancel safe.
    pub(super) async fn news(&self, after: u64) {
        let was = self.state();
        loop {
            let mut told = pin!(self.sink.log().changed.notified());
            // From here on no word is missed.
            told.as_mut().enable();
            let written = self.sink.log().bytes() as u64;
            if self.has_ended() || self.state() != was || written > after {
                return;
            }
            told.await;
        }
    }

    pub(super) fn view(&self, after: u64) -> ExecutionView {
        // Before the output: what is over writes no more, so that with an ending comes all there is.
        let ended = self.ended.get();
        let (output, next, cut) = self.sink.log().after(after);
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
            output,
            next,
            output_cut: cut,
        }
    }
}
