use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use std::time::{Duration, Instant};

/// Source of requests and receiver of results. It runs on the generator's thread: slow methods delay the schedule.
pub trait Driver {
    /// Called at the start; all times count from this instant.
    fn started(&mut self, _start: Instant) {}

    /// Next request in order of time. After `None` it is not called again; retries from [`ended`](Self::ended) are
    /// still sent.
    fn next(&mut self) -> Option<ScheduledRequest>;

    /// Called once with the result of each request. A returned request is sent when it is due, as a retry. After
    /// [`Failure::Unsent`] a returned request is dropped.
    fn ended(
        &mut self,
        scheduled: ScheduledRequest,
        answer: &Answer<'_>,
    ) -> Option<ScheduledRequest>;

    /// Called about ten times a second, for progress; `false` stops at once, without the grace time.
    fn tick(&mut self, _now: Duration, _progress: &Progress) -> bool {
        true
    }
}

/// Request with its due time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledRequest {
    /// Due time from the start of the run. A past one is sent at once and counts as late.
    pub due: Duration,
    /// Index of the template.
    pub template: u16,
    /// Appended to the template's path, such as `?ms=12.5`.
    pub suffix: String,
    /// Id for the driver.
    pub id: u64,
}

/// Result of a request.
#[derive(Debug)]
pub struct Answer<'a> {
    /// Time of sending; `None` if it was never sent.
    pub sent: Option<Duration>,
    /// Time of the whole response or the failure.
    pub at: Duration,
    /// Response with any status, or failure.
    pub result: Result<&'a Reply, Failure>,
}

/// Response.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Status.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// Body, at most the first [`BODY_BYTES_MAX`](super::BODY_BYTES_MAX) bytes.
    pub body: Bytes,
}

/// Reason of a missing response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// No connection: refused, timed out, or closed before the request was sent.
    Connect,
    /// The request was sent, and the connection ended before the whole response, or the response was invalid.
    Broken,
    /// No whole response by the deadline, the end of the grace time or the end of the run. A request with a
    /// deadline may have waited in the queue until then.
    Deadline,
    /// Never sent: the run ended first, the queue was full, or the suffix is not valid in a URI.
    Unsent,
}

/// Progress of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Requests in flight.
    pub in_flight: usize,
    /// Due requests without a connection.
    pub waiting: usize,
    /// Open connections.
    pub connections: usize,
}

// === impl ScheduledRequest ===

impl ScheduledRequest {
    /// Request with the path of the template.
    #[must_use]
    pub fn new(due: Duration, template: u16, id: u64) -> Self {
        Self { due, template, suffix: String::new(), id }
    }
}

// === impl Failure ===

impl Failure {
    /// Name for tables and labels.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Broken => "broken",
            Self::Deadline => "deadline",
            Self::Unsent => "unsent",
        }
    }
}
