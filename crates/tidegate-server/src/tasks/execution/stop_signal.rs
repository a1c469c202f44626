use tidegate::task::{EndReason, Ending, TaskOutcome};
use tokio::sync::watch;

/// Signal that an execution must stop, with the reason. The receiving end.
#[derive(Debug)]
pub struct StopSignal {
    reason: watch::Receiver<Option<StopReason>>,
}

/// The sending end of a [`StopSignal`].
#[derive(Debug)]
pub struct StopSwitch {
    reason: watch::Sender<Option<StopReason>>,
}

/// Reason why an execution must stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// A client or the manager cancelled it.
    Cancelled,
    /// Nobody asked for it within its lease.
    LeaseExpired,
    /// The executor shuts down.
    Draining,
}

// === impl StopSignal ===

impl StopSignal {
    /// A signal and its switch.
    #[must_use]
    pub fn new() -> (StopSwitch, Self) {
        let (sender, reason) = watch::channel(None);
        (StopSwitch { reason: sender }, Self { reason })
    }

    /// Waits until the execution must stop. Cancel safe; a later call returns the same reason at once.
    pub async fn stopped(&mut self) -> StopReason {
        match self.reason.wait_for(Option::is_some).await {
            Ok(reason) => reason.unwrap_or(StopReason::Draining),
            // The switch is dropped: the executor is gone.
            Err(_) => StopReason::Draining,
        }
    }
}

// === impl StopSwitch ===

impl StopSwitch {
    /// Stops the execution. The first reason stays.
    pub fn stop(&self, reason: StopReason) {
        self.reason.send_if_modified(|current| {
            let first = current.is_none();
            current.get_or_insert(reason);
            first
        });
    }
}

// === impl StopReason ===

impl StopReason {
    /// The ending of an execution that was stopped for this reason.
    #[must_use]
    pub fn ending(self) -> Ending {
        let (reason, message) = match self {
            Self::Cancelled => (EndReason::Cancelled, "it was cancelled"),
            Self::LeaseExpired => (EndReason::LeaseExpired, "nobody asked for it within its lease"),
            Self::Draining => (EndReason::Cancelled, "the executor shuts down"),
        };
        Ending::new(TaskOutcome::Cancelled, reason).because(message)
    }
}
