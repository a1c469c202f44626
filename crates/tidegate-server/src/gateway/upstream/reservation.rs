use super::{Turn, Upstream};
use crate::http::response::is_refusal;
use http::StatusCode;
use std::sync::Arc;
use std::time::Duration;
use tidegate::routing::{Answer, Assignment, LoadReport};

/// A reservation of a request at an upstream. Released when it is dropped.
#[derive(Debug)]
pub struct Reservation {
    upstream: Arc<Upstream>,
    assignment: Assignment,
    /// Its turn to be sent, once it has come.
    turn: Option<Turn>,
}

// === impl Placed ===

impl Reservation {
    pub(super) fn new(upstream: &Arc<Upstream>, assignment: Assignment) -> Self {
        Self { upstream: Arc::clone(upstream), assignment, turn: None }
    }

    /// The upstream.
    #[must_use]
    pub fn upstream(&self) -> &Arc<Upstream> {
        &self.upstream
    }

    /// The rank of the upstream that the request was charged to.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.assignment.rank()
    }

    /// Takes its turn to be sent.
    pub fn take(&mut self, turn: Turn) {
        self.turn = Some(turn);
    }

    /// Records that the whole request was sent just now.
    pub fn sent(&mut self) {
        self.assignment.sent(self.upstream.monitor().now());
    }

    /// Records that the head of the response came this long after the request, and the load report that it
    /// carries.
    pub fn answered(
        &self,
        status: StatusCode,
        after: Duration,
        report: impl FnOnce() -> Option<LoadReport>,
    ) {
        let answer = if is_refusal(status) { Answer::Refused } else { Answer::Began(after) };
        let monitor = self.upstream.monitor();
        let now = monitor.now();
        self.assignment.answered(answer, now);
        self.upstream.record_response_start(after);
        if !self.upstream.is_scraped()
            && let Some(report) = report()
        {
            monitor.report(self.upstream.id(), self.assignment.rank(), report, now);
            self.upstream.learn(|source| source.orca = true);
        }
    }

    /// Records that the upstream could not be reached, or broke off before it answered.
    pub fn failed(&self) {
        self.upstream.count_failure();
        self.assignment.answered(Answer::Refused, self.upstream.monitor().now());
    }

    /// Records the first piece of the response.
    pub fn prefilled(&mut self) {
        self.assignment.prefilled();
    }
}
