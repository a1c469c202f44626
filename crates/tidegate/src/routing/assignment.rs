use super::model::Model;
use super::upstream::Upstream;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::routing::{Answer, ChargeTicket};

/// A slot of a request at an upstream. Dropping it releases the slot.
#[derive(Debug)]
#[must_use = "the slot is released when this is dropped"]
pub struct Assignment {
    upstream: Arc<Upstream>,
    model: Arc<Model>,
    rank: usize,
    /// Taken when the slot is released.
    ticket: Option<ChargeTicket>,
    prefilled: bool,
}

// === impl Assignment ===

impl Assignment {
    pub(super) fn new(upstream: &Arc<Upstream>, model: &Arc<Model>, ticket: ChargeTicket) -> Self {
        model.demand.begin();
        Self {
            upstream: Arc::clone(upstream),
            model: Arc::clone(model),
            rank: ticket.rank(),
            ticket: Some(ticket),
            prefilled: false,
        }
    }

    /// Returns the upstream that gets the request.
    #[must_use]
    pub fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// Returns the rank that the request is charged to.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Records the upstream's answer: it refused, could not be reached, or began to answer after some time.
    pub fn answered(&self, answer: Answer, now: Duration) {
        self.upstream.observe(answer, now);
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
        if let Some(ticket) = self.ticket.take() {
            self.upstream.release(ticket);
        }
        self.model.demand.end();
    }
}
