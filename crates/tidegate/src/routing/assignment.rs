use super::model::Model;
use super::upstream::Upstream;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::admission::MessagePriority;
use tidegate_core::limit::UpstreamOutcome;
use tidegate_core::routing::{Answer, UpstreamTicket};

/// A slot of a request at an upstream. Dropping it releases the slot.
#[derive(Debug)]
#[must_use = "the slot is released when this is dropped"]
pub struct Assignment {
    upstream: Arc<Upstream>,
    model: Arc<Model>,
    rank: usize,
    /// Taken when the slot is released.
    ticket: Option<UpstreamTicket>,
    outcome: UpstreamOutcome,
    prefilled: bool,
    since: Duration,
    /// The time that the request waited for this slot.
    waited: Duration,
    /// The time of the end, if the caller knows it.
    ended_at: Option<Duration>,
    /// True if the slot was used: only then its time says something about the upstream.
    is_used: bool,
}

// === impl Assignment ===

impl Assignment {
    pub(super) fn new(
        upstream: &Arc<Upstream>,
        model: &Arc<Model>,
        ticket: UpstreamTicket,
        priority: MessagePriority,
        since: Duration,
    ) -> Self {
        model.demand.begin(since);
        model.queue.count_sent(priority);
        Self {
            upstream: Arc::clone(upstream),
            model: Arc::clone(model),
            rank: ticket.rank(),
            ticket: Some(ticket),
            outcome: UpstreamOutcome::Ignored,
            prefilled: false,
            since,
            waited: Duration::ZERO,
            ended_at: None,
            is_used: true,
        }
    }

    /// Returns the upstream that gets the request.
    #[must_use]
    pub fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// Returns the time that the request waited in the queue.
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// Gives the slot back unused: it belongs to a request that comes first.
    pub(super) fn give_back(mut self) {
        self.is_used = false;
    }

    pub(super) fn set_waited(&mut self, waited: Duration) {
        self.waited = waited;
    }

    /// Returns the rank that the request is charged to.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Records the upstream's answer: it refused, could not be reached, or began to answer after some time.
    pub fn answered(&self, answer: Answer, now: Duration) {
        if let Answer::Began(first_byte) = answer {
            self.model.queue.count_began(first_byte);
        }
        self.upstream.observe(answer, now);
    }

    /// Records the end of the request. A limit that is found learns from it when the slot is released. Without it
    /// the end is ignored, as that of a request whose client left.
    pub fn set_outcome(&mut self, outcome: UpstreamOutcome) {
        self.outcome = outcome;
    }

    /// Releases the slot of a request that ended at `now`.
    pub fn end(mut self, now: Duration) {
        self.ended_at = Some(now);
    }

    /// Records that the whole request was sent at `now`. No earlier report of the upstream can include it.
    pub fn sent(&mut self, now: Duration) {
        if let Some(ticket) = &mut self.ticket {
            self.upstream.sent(ticket, now);
        }
    }

    /// Records the first piece of the answer: the upstream has finished the prefill.
    pub fn prefilled(&mut self) {
        if !self.prefilled
            && let Some(ticket) = &mut self.ticket
        {
            self.upstream.prefilled(ticket);
            self.prefilled = true;
        }
    }
}

impl Drop for Assignment {
    fn drop(&mut self) {
        let now = self.ended_at.unwrap_or_else(|| self.upstream.now());
        // A connection that could not be made took no service.
        let is_service = self.is_used && self.outcome != UpstreamOutcome::ConnectFailed;
        let served = is_service.then(|| now.saturating_sub(self.since));
        // Nor does a refusal, for the clients that wait to return.
        let is_refusal = self.outcome == UpstreamOutcome::Refused;
        self.model.demand.end(now, served.filter(|_| !is_refusal));
        if let Some(served) = served {
            self.model.queue.count_ended(served);
        }
        if let Some(ticket) = self.ticket.take() {
            self.upstream.release(ticket, self.outcome, now);
        }
    }
}
