use super::Upstream;
use crate::http::response::is_refusal;
use http::StatusCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidegate::OwnedPermit;
use tidegate::limit::UpstreamOutcome;
use tidegate::routing::{Answer, Assignment, LoadReport};

/// A reservation of a request at an upstream. Released when it is dropped.
#[derive(Debug)]
pub struct Reservation {
    upstream: Arc<Upstream>,
    assignment: Assignment,
    /// Its part of the upstream's share of the gateway, once it is sent.
    share: Option<OwnedPermit>,
    /// The time of sending, while the body of the response has not begun.
    awaits_body: Option<Instant>,
    /// True if the upstream refused the request.
    is_refusal: bool,
}

// === impl Reservation ===

impl Reservation {
    pub(super) fn new(upstream: &Arc<Upstream>, assignment: Assignment) -> Self {
        Self {
            upstream: Arc::clone(upstream),
            assignment,
            share: None,
            awaits_body: None,
            is_refusal: false,
        }
    }

    /// The upstream.
    #[must_use]
    pub fn upstream(&self) -> &Arc<Upstream> {
        &self.upstream
    }

    /// The time that the request waited in the queue.
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.assignment.waited()
    }

    /// The rank of the upstream that the request was charged to.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.assignment.rank()
    }

    /// Takes its part of the upstream's share of the gateway.
    pub fn take_share(&mut self, share: Option<OwnedPermit>) {
        self.share = share;
    }

    /// Records that the whole request was sent at `now`.
    pub fn sent(&mut self, now: Instant) {
        self.assignment.sent(self.upstream.monitor().at(now));
    }

    /// Records the head of the response to a request that was sent at this time, and the load report that it
    /// carries.
    ///
    /// Only a refusal says something about the latency by its head. Servers send the head of a stream at once and
    /// its first token seconds later, so that a response counts as begun with its body.
    pub fn answered(
        &mut self,
        status: StatusCode,
        sent_at: Instant,
        report: impl FnOnce() -> Option<LoadReport>,
    ) {
        let monitor = self.upstream.monitor();
        let instant = Instant::now();
        let now = monitor.at(instant);
        self.is_refusal = is_refusal(status);
        match self.is_refusal {
            true => self.assignment.answered(Answer::Refused, now),
            false => self.awaits_body = Some(sent_at),
        }
        self.upstream.record_response_start(instant.saturating_duration_since(sent_at));
        if !self.upstream.is_scraped()
            && let Some(report) = report()
        {
            monitor.report(self.upstream.id(), self.assignment.rank(), report, now);
            self.upstream.learn(|source| source.orca = true);
        }
    }

    /// Records that the upstream could not be reached, or broke off.
    pub fn failed(&mut self) {
        self.fail(UpstreamOutcome::ConnectFailed);
    }

    /// Records that the upstream did not answer in time.
    pub fn timed_out(&mut self) {
        self.fail(UpstreamOutcome::TimedOut);
    }

    fn fail(&mut self, outcome: UpstreamOutcome) {
        self.upstream.count_failure();
        let answer = match outcome {
            UpstreamOutcome::ConnectFailed => Answer::Failed,
            _ => Answer::Refused,
        };
        self.assignment.answered(answer, self.upstream.monitor().now());
        self.assignment.set_outcome(outcome);
    }

    /// Records the first piece of the response's body.
    pub fn prefilled(&mut self) {
        self.record_latency(Instant::now());
        self.assignment.prefilled();
    }

    /// Records that the response was complete at `now`, and releases the reservation.
    pub fn complete(mut self, now: Instant) {
        self.record_latency(now);
        self.assignment.set_outcome(match self.is_refusal {
            true => UpstreamOutcome::Refused,
            false => UpstreamOutcome::Success,
        });
        self.assignment.end(self.upstream.monitor().at(now));
    }

    fn record_latency(&mut self, now: Instant) {
        if let Some(sent_at) = self.awaits_body.take() {
            let answer = Answer::Began(now.saturating_duration_since(sent_at));
            self.assignment.answered(answer, self.upstream.monitor().at(now));
        }
    }
}
