use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use tidegate_core::retry::Failure;

/// Where messages go. It is the key of a queue and names it in snapshots.
pub trait Destination: Clone + Ord + fmt::Debug + Send + Sync + 'static {
    /// Name or address, without a port.
    fn host(&self) -> String;

    /// Port; 0 where there is none.
    fn port(&self) -> u16;
}

/// Delivers messages to a destination.
///
/// One sender for each destination calls it, so there is never more than one [`send`](Self::send) under way to a
/// destination, and sends to different destinations do not wait for each other.
pub trait Transport: Send + Sync + 'static {
    /// Where messages go.
    type Destination: Destination;
    /// The message. Borrowed for a send: a cancelled send can't lose it.
    type Message: Send + Sync + 'static;
    /// The destination's answer to one message.
    type Reply: Send + 'static;
    /// Error of a send.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Messages that one send takes at the most; 1 says that this transport can't batch. Asked once, when a
    /// manager is made; 0 counts as 1.
    fn batch_max(&self) -> usize {
        1
    }

    /// Delivers a batch, the first message first, and returns one reply for each, in the same order.
    ///
    /// # Errors
    ///
    /// Tells how many were delivered before it failed, and whether the others may have been.
    ///
    /// # Cancel safety
    ///
    /// The future is dropped when its deadline passes or the manager is shut down. What it had under way then
    /// counts as [`Failure::Lost`], for nobody can tell how far it got: a transport that wants an unanswered
    /// connect to count as [`Failure::Unreachable`] ends that by itself, sooner. A connection that is left in the
    /// middle of a message should be closed.
    fn send(
        &self,
        destination: &Self::Destination,
        batch: &[Self::Message],
    ) -> impl Future<Output = Delivery<Self::Reply, Self::Error>> + Send;

    /// A destination is no longer used: a good time to close its connections.
    fn forget(&self, destination: &Self::Destination) {
        let _ = destination;
    }
}

/// Result of a send: a reply for each message of the batch, or the failure.
pub type Delivery<R, E> = Result<Vec<R>, Undelivered<R, E>>;

/// A send failed; all of the batch, or all but its first messages.
#[derive(Clone, Debug)]
pub struct Undelivered<R, E> {
    /// The replies to the messages that were delivered before it failed: as many as the first of the batch.
    pub replies: Vec<R>,
    /// State of the other messages. After [`Failure::Lost`] they may have been delivered.
    pub failure: Failure,
    /// The error.
    pub error: E,
}

// === impl Destination ===

impl Destination for SocketAddr {
    fn host(&self) -> String {
        self.ip().to_string()
    }

    fn port(&self) -> u16 {
        SocketAddr::port(self)
    }
}

impl Destination for (String, u16) {
    fn host(&self) -> String {
        self.0.clone()
    }

    fn port(&self) -> u16 {
        self.1
    }
}

// === impl Undelivered ===

impl<R, E> Undelivered<R, E> {
    /// Nothing of the batch was delivered, or may have been only after [`Failure::Lost`].
    pub fn all(failure: Failure, error: E) -> Self {
        Self { replies: Vec::new(), failure, error }
    }
}
