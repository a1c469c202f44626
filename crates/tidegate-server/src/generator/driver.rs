use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use std::time::{Duration, Instant};

/// Decides what is sent when. Called on the generator's thread only: what takes long here makes the schedule late.
pub trait Driver {
    /// The run starts: the times of all requests count from this instant.
    fn started(&mut self, _start: Instant) {}

    /// The next request in order of time. After `None` it is not asked again; what it hands back in
    /// [`ended`](Self::ended) is still sent.
    fn next(&mut self) -> Option<Shot>;

    /// What came of a request; called once for each. A shot that is handed back is sent when it is due, as a
    /// retry. Not after [`Failure::Unsent`], though: then nothing is sent any more, or nothing more can be
    /// held, and what is handed back is forgotten.
    fn ended(&mut self, shot: Shot, answer: &Answer<'_>) -> Option<Shot>;

    /// About ten times a second, for progress and to stop early: `false` stops, without waiting for the grace
    /// time.
    fn tick(&mut self, _now: Duration, _progress: &Progress) -> bool {
        true
    }
}

/// A request that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shot {
    /// When, from the start of the run. What is due already is sent at once, and is late by as much.
    pub due: Duration,
    /// Which template.
    pub template: u16,
    /// Appended to the template's path, such as `?ms=12.5`.
    pub suffix: String,
    /// The driver's own.
    pub id: u64,
}

/// What came of a request.
#[derive(Debug)]
pub struct Answer<'a> {
    /// When it was sent; none when nothing of it ever was.
    pub sent: Option<Duration>,
    /// When the whole answer was there, or the failure.
    pub at: Duration,
    /// The answer, whatever its status.
    pub result: Result<&'a Head, Failure>,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Head {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, or the first [`BODY_KEPT`](super::BODY_KEPT) bytes of it.
    pub body: Bytes,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// There was no connection to send it on: refused, not made in time, or closed before anything was sent on it.
    Connect,
    /// It was sent, and the connection was cut before the whole answer was there, or the answer was nonsense.
    Broken,
    /// The whole answer was not there when the client's deadline, the grace time or the run was over. It may never
    /// have been sent, when it waited in line until then and had a deadline.
    Deadline,
    /// It never had a connection: the run was over first, too many waited for one already, or its suffix makes
    /// no URI.
    Unsent,
}

/// How the run goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Requests that were sent and not answered.
    pub in_flight: usize,
    /// Requests that are due and have no connection.
    pub waiting: usize,
    /// Open connections.
    pub connections: usize,
}

// === impl Shot ===

impl Shot {
    /// A request whose path is the template's as it is.
    #[must_use]
    pub fn new(due: Duration, template: u16, id: u64) -> Self {
        Self { due, template, suffix: String::new(), id }
    }
}

// === impl Failure ===

impl Failure {
    /// A word for it, for tables and labels.
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
