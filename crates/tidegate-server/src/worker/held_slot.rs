use super::execution::Execution;
use super::executor::Shared;
use super::output::floor_char;
use super::work::{StopSignal, Work};
use std::sync::Arc;
use tidegate::task::{EndReason, Ending, Outcome};

/// No message is longer, whoever wrote it.
const MESSAGE_BYTES_MAX: usize = 4 << 10;

/// A slot while something runs in it. Whatever becomes of that, the slot comes free exactly once.
pub(super) struct HeldSlot {
    shared: Arc<Shared>,
    execution: Arc<Execution>,
}

// === impl HeldSlot ===

impl HeldSlot {
    pub(super) fn new(shared: Arc<Shared>, execution: Arc<Execution>) -> Self {
        Self { shared, execution }
    }

    /// Runs to the end.
    pub(super) async fn run(self, work: Work, stop: StopSignal) {
        self.execution.set_running();
        let ending = self.shared.runner.run(&work, &self.execution.sink, stop).await;
        self.end(ending);
    }

    fn end(&self, mut ending: Ending) {
        let log = self.execution.sink.log();
        log.close();
        ending.ran_ms = u64::try_from(self.execution.ran().as_millis()).unwrap_or(u64::MAX);
        ending.output_cut = log.after(u64::MAX).2;
        ending.message.truncate(floor_char(&ending.message, MESSAGE_BYTES_MAX));
        self.shared.end(&self.execution, ending);
    }
}

impl Drop for HeldSlot {
    fn drop(&mut self) {
        if !self.execution.has_ended() {
            // The runner panicked, or its runtime is gone: that is no failure of what ran.
            let ending = Ending::new(Outcome::Cancelled, EndReason::ExecutorLost);
            self.end(ending.because("the executor broke while it ran this"));
        }
    }
}
