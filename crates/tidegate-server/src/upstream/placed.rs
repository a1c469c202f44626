use super::{Turn, Upstream};
use crate::load::orca;
use http::{HeaderMap, StatusCode};
use std::sync::Arc;
use std::time::Duration;
use tidegate::routing::{Answer, Assignment};

/// A request's place at an upstream. Given back when it is dropped.
#[derive(Debug)]
pub struct Placed {
    upstream: Arc<Upstream>,
    assignment: Assignment,
    /// Its turn to be sent, once that came.
    turn: Option<Turn>,
}

// === impl Placed ===

impl Placed {
    pub(super) fn new(upstream: &Arc<Upstream>, assignment: Assignment) -> Self {
        Self { upstream: Arc::clone(upstream), assignment, turn: None }
    }

    /// Where the request goes.
    #[must_use]
    pub fn upstream(&self) -> &Arc<Upstream> {
        &self.upstream
    }

    /// The rank of the upstream that it was charged to.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.assignment.rank()
    }

    /// Its turn has come.
    pub fn take(&mut self, turn: Turn) {
        self.turn = Some(turn);
    }

    /// The request went out as a whole just now.
    pub fn sent(&mut self) {
        self.assignment.sent(self.upstream.monitor().now());
    }

    /// The head of the answer came this long after the request went: what that says of the upstream.
    pub fn answered(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        after: Duration,
        read_orca: bool,
    ) {
        let answer = if refuses(status) { Answer::Refused } else { Answer::Began(after) };
        let monitor = self.upstream.monitor();
        let now = monitor.now();
        self.assignment.answered(answer, now);
        if read_orca
            && !self.upstream.is_scraped()
            && let Some(report) = orca::parse(headers)
        {
            monitor.report(self.upstream.worker, self.assignment.rank(), report, now);
            self.upstream.learn(|source| source.orca = true);
        }
    }

    /// It could not be reached, or broke off before it answered.
    pub fn failed(&self) {
        self.upstream.count_failure();
        self.assignment.answered(Answer::Refused, self.upstream.monitor().now());
    }

    /// The first piece of the answer is here.
    pub fn prefilled(&mut self) {
        self.assignment.prefilled();
    }
}

/// What says "not now", and what fails, however quickly: a worker that does either at once would look like the
/// fastest of all, and attract what the others could do. What it does not implement is the request's fault.
fn refuses(status: StatusCode) -> bool {
    let failed = status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED;
    failed || status == StatusCode::TOO_MANY_REQUESTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failing_fast_is_not_being_fast() {
        let refused = |status: u16| StatusCode::from_u16(status).map(refuses);
        for status in [429, 500, 502, 503, 504, 529] {
            assert_eq!(refused(status).ok(), Some(true), "{status}");
        }
        for status in [200, 204, 304, 400, 404, 501] {
            assert_eq!(refused(status).ok(), Some(false), "{status}");
        }
    }
}
