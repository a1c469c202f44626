use super::{Decision, DecisionLog, Verdict};
use crate::http::RejectionReason;
use std::sync::Arc;
use std::time::Instant;
use tidegate::MessagePriority;

/// Records the decisions of one io thread. Each thread has its own, because a counter that all requests change
/// must not be shared between threads.
#[derive(Debug)]
pub struct DecisionRecorder {
    decision_log: Arc<DecisionLog>,
}

/// The decision on a request that has not ended. Dropping it publishes the decision, also when the client left or
/// the task was cancelled.
#[derive(Debug)]
#[must_use = "the decision is published when this is dropped"]
pub struct PendingDecision {
    recorder: Arc<DecisionRecorder>,
    decided: Instant,
    priority: MessagePriority,
    client: Option<Box<str>>,
    verdict: Verdict,
    had_slot: bool,
}

// === impl DecisionRecorder ===

impl DecisionRecorder {
    /// Creates a recorder for this log.
    #[must_use]
    pub fn new(decision_log: Arc<DecisionLog>) -> Self {
        Self { decision_log }
    }

    /// Begins the record of a request that was just decided. Looks up the client and the time only while a
    /// recording is active.
    #[inline]
    pub fn begin<'a>(
        self: &Arc<Self>,
        started: Instant,
        priority: MessagePriority,
        client: impl FnOnce() -> Option<&'a str>,
    ) -> PendingDecision {
        let (decided, client) = match self.decision_log.is_on() {
            true => (Instant::now(), client().map(Box::from)),
            false => (started, None),
        };
        let (recorder, verdict) = (Arc::clone(self), Verdict::Admitted);
        PendingDecision { recorder, decided, priority, client, verdict, had_slot: true }
    }
}

// === impl PendingDecision ===

impl PendingDecision {
    /// Records that the request was not admitted.
    pub fn refused(mut self, rejection: RejectionReason) {
        self.verdict = Verdict::Rejected(rejection);
        self.had_slot = false;
    }

    /// Records that the request was admitted, and refused after that for another reason than a limit.
    pub fn rejected(mut self, rejection: RejectionReason) {
        self.verdict = Verdict::Rejected(rejection);
    }
}

impl Drop for PendingDecision {
    #[inline]
    fn drop(&mut self) {
        let decision_log = &self.recorder.decision_log;
        if decision_log.is_on() {
            decision_log.publish(&Decision {
                decided: self.decided,
                took: self.had_slot.then(|| self.decided.elapsed()),
                priority: self.priority,
                verdict: self.verdict,
                client: self.client.take(),
            });
        }
    }
}
