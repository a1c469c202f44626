use super::driver::{Failure, Head};
use super::http2::Http2Link;
use super::prepared::Outgoing;
use std::io;
use std::time::Duration;
use tokio::sync::mpsc;

/// A connection's number: never used twice.
pub(super) type ConnectionId = u64;

/// Where a request is in [`Flights`](super::flights::Flights) while it is under way.
pub(super) type FlightId = usize;

/// What connections tell the engine. The channel has no bound of its own: a connection tells at most two things
/// for each request it was given and three in its life, and both are bounded.
pub(super) type Events = mpsc::UnboundedSender<Event>;

pub(super) enum Event {
    /// A connection is open.
    Opened(Opened),
    /// A connection could not be opened.
    NotOpened(io::Error),
    /// A connection takes one request more.
    Free(ConnectionId),
    /// A connection's server changed how many requests it takes at once.
    Room(ConnectionId, usize),
    /// A connection is gone. What it was given ends by itself.
    Closed(ConnectionId),
    /// A request was sent, and ended.
    Ended(Ended),
    /// Nothing of a request was written, because the connection was closed.
    Returned {
        flight: FlightId,
        /// Whether an answer ever came on that connection: if not, the request is not tried on another one,
        /// because a server that closes what it accepts would be asked for ever.
        worked: bool,
    },
}

pub(super) struct Opened {
    pub id: ConnectionId,
    pub link: Link,
    /// How many requests it takes at once.
    pub room: usize,
    /// How long it took to open.
    pub took: Duration,
}

pub(super) struct Ended {
    pub connection: ConnectionId,
    pub flight: FlightId,
    pub sent: Duration,
    pub at: Duration,
    pub result: Result<Box<Head>, Failure>,
}

/// How requests get to a connection.
pub(super) enum Link {
    Http1(mpsc::Sender<Departure>),
    Http2(Http2Link),
}

/// A request on its way to a connection.
pub(super) struct Departure {
    pub flight: FlightId,
    pub request: Outgoing,
    /// When its client gives up.
    pub deadline: Option<Duration>,
}
