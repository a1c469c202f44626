use super::output::OutputLog;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tidegate::task::{EndReason, Ending, ExecutionKey, Outcome, OutputStream};
use tokio::sync::watch;

/// One execution, as a runner is given it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// Which attempt at which task.
    pub key: ExecutionKey,
    /// What runs it.
    pub runtime: String,
    /// What is run.
    pub code: String,
    /// Arguments after the code.
    pub args: Vec<String>,
    /// Added to the runtime's environment.
    pub env: BTreeMap<String, String>,
    /// How long it may run.
    pub timeout: Duration,
}

/// Where output goes. Cheap to clone, and bounded by the executor.
#[derive(Clone, Debug)]
pub struct OutputSink {
    log: Arc<OutputLog>,
}

/// Resolves when the execution must stop, and says why.
#[derive(Debug)]
pub struct StopSignal {
    why: watch::Receiver<Option<StopWhy>>,
}

/// The other end of a [`StopSignal`].
#[derive(Debug)]
pub struct StopSwitch {
    why: watch::Sender<Option<StopWhy>>,
}

/// Why an execution must stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopWhy {
    /// Somebody said so.
    Cancelled,
    /// Nobody asked for it any more.
    LeaseExpired,
    /// The executor ends.
    Draining,
}

// === impl OutputSink ===

impl OutputSink {
    /// Keeps at most so many bytes of text.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self { log: Arc::new(OutputLog::new(bytes_max)) }
    }

    /// Takes what was written. False when the limit is reached: the task is then to be stopped, and ends with
    /// [`OutputLimit`](tidegate::task::EndReason::OutputLimit). What fits is kept.
    ///
    /// A character may be cut anywhere between two writes to the same stream.
    #[must_use]
    pub fn write(&self, stream: OutputStream, bytes: &[u8]) -> bool {
        self.log.write(stream, bytes)
    }

    pub(super) fn log(&self) -> &Arc<OutputLog> {
        &self.log
    }
}

// === impl StopSignal ===

impl StopSignal {
    /// A signal, and the switch that gives it.
    #[must_use]
    pub fn new() -> (StopSwitch, Self) {
        let (sender, why) = watch::channel(None);
        (StopSwitch { why: sender }, Self { why })
    }

    /// Waits until the execution must stop. Cancel safe; told once, it says the same again.
    pub async fn stopped(&mut self) -> StopWhy {
        match self.why.wait_for(Option::is_some).await {
            Ok(why) => why.unwrap_or(StopWhy::Draining),
            // Whoever could have said more is gone, and so is the executor.
            Err(_) => StopWhy::Draining,
        }
    }
}

// === impl StopSwitch ===

impl StopSwitch {
    /// Stops the execution. The first reason stays.
    pub fn stop(&self, why: StopWhy) {
        self.why.send_if_modified(|now| {
            let first = now.is_none();
            now.get_or_insert(why);
            first
        });
    }
}

// === impl StopWhy ===

impl StopWhy {
    /// How an execution ends that was stopped for this.
    #[must_use]
    pub fn ending(self) -> Ending {
        let (reason, message) = match self {
            Self::Cancelled => (EndReason::Cancelled, "it was told to stop"),
            Self::LeaseExpired => {
                (EndReason::LeaseExpired, "nobody asked for it for as long as its lease")
            }
            Self::Draining => (EndReason::Cancelled, "the executor ends"),
        };
        Ending::new(Outcome::Cancelled, reason).because(message)
    }
}
