use crate::generator::driver::{Failure, Reply};
use crate::generator::in_flight::FlightId;
use crate::generator::prepared::Outgoing;
use std::io;
use std::time::Duration;
use tokio::sync::mpsc;

/// Number of a connection, never reused.
pub(in crate::generator) type ConnectionId = u64;

/// Channel of events to the engine. It has no limit of its own: a connection sends at most two events per request
/// and three in its life, and both are limited.
pub(in crate::generator) type Events = mpsc::UnboundedSender<Event>;

/// Event of a connection.
pub(in crate::generator) enum Event {
    /// A connection is open.
    Opened(Opened),
    /// A connection could not be opened.
    NotOpened(io::Error),
    /// A connection can take one more request.
    Free(ConnectionId),
    /// The server changed the stream limit of a connection.
    Room(ConnectionId, usize),
    /// A connection has ended. Its requests end on their own.
    Closed(ConnectionId),
    /// A sent request has ended.
    Ended(Ended),
    /// A request was not sent because the connection was closed.
    Returned {
        flight: FlightId,
        /// A response arrived on the connection before. Without one the request is not retried: a server that
        /// closes what it accepts would be retried forever.
        worked: bool,
    },
}

/// Open connection.
pub(in crate::generator) struct Opened {
    pub id: ConnectionId,
    pub link: Box<dyn Link + Send>,
    /// Stream limit.
    pub room: usize,
    /// Duration of opening.
    pub took: Duration,
}

/// Ended request.
pub(in crate::generator) struct Ended {
    pub connection: ConnectionId,
    pub flight: FlightId,
    pub sent: Duration,
    pub at: Duration,
    pub result: Result<Box<Reply>, Failure>,
}

/// Sending half of a connection.
pub(in crate::generator) trait Link {
    /// Passes a request on; `false` if the connection has ended.
    fn dispatch(&self, dispatch: Dispatch) -> bool;
}

/// Request for a connection.
pub(in crate::generator) struct Dispatch {
    pub flight: FlightId,
    pub request: Outgoing,
    /// Deadline of the response.
    pub deadline: Option<Duration>,
}
