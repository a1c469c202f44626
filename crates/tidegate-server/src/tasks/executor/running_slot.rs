use super::execution::Execution;
use super::state::ExecutorState;
use crate::tasks::execution::{StopSignal, Work, floor_char};
use std::sync::Arc;
use tidegate::task::{EndReason, Ending, TaskOutcome};

/// Longest message of an ending.
const MESSAGE_BYTES_MAX: usize = 4 << 10;

/// A slot while an execution runs in it. The slot is freed exactly once, also after a panic or a cancellation.
pub(super) struct RunningSlot {
    state: Arc<ExecutorState>,
    execution: Arc<Execution>,
}

// === impl RunningSlot ===

impl RunningSlot {
    pub(super) fn new(state: Arc<ExecutorState>, execution: Arc<Execution>) -> Self {
        Self { state, execution }
    }

    /// Runs the execution to its end.
    pub(super) async fn run(self, work: Work, stop: StopSignal) {
        self.execution.set_running();
        let (sink, progress) = (&self.execution.sink, &self.execution.progress);
        let ending = self.state.runner.run(&work, sink, progress, stop).await;
        self.end(ending);
    }

    fn end(&self, mut ending: Ending) {
        let log = self.execution.sink.log();
        log.close();
        self.execution.progress.close();
        ending.ran_ms = u64::try_from(self.execution.ran().as_millis()).unwrap_or(u64::MAX);
        ending.output_cut = log.is_cut();
        ending.message.truncate(floor_char(&ending.message, MESSAGE_BYTES_MAX));
        self.state.end(&self.execution, ending);
    }
}

impl Drop for RunningSlot {
    fn drop(&mut self) {
        if !self.execution.has_ended() {
            // The runner panicked or its runtime is gone: not a failure of the task.
            let ending = Ending::new(TaskOutcome::Cancelled, EndReason::ExecutorLost);
            self.end(ending.because("the executor failed while it ran this"));
        }
    }
}
