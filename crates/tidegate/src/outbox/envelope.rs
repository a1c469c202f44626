use super::error::{OutgoingSendError, SendFailure};
use super::transport::Transport;
use std::fmt;
use tidegate_core::admission::MessageClass;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Answer to a caller that waits for its message.
pub(super) type Answer<T> = Result<
    <T as Transport>::Reply,
    OutgoingSendError<<T as Transport>::Message, <T as Transport>::Error>,
>;

/// A message on its way.
pub(super) struct Envelope<T: Transport> {
    pub(super) message: T::Message,
    pub(super) ticket: Ticket<T>,
}

/// All of a message's way but the message: a transport is shown messages in a row, without their tickets.
pub(super) struct Ticket<T: Transport> {
    pub(super) class: MessageClass,
    pub(super) expires: Instant,
    pub(super) attempts: u32,
    /// True if one of these attempts may have delivered it.
    pub(super) maybe_delivered: bool,
    /// The waiting caller, if there is one.
    pub(super) waiter: Option<oneshot::Sender<Answer<T>>>,
}

/// An undelivered message that no caller waited for.
pub struct FailedMessage<T: Transport> {
    /// Its destination.
    pub destination: T::Destination,
    /// The class with which it was enqueued.
    pub class: MessageClass,
    /// The message and the cause.
    pub error: OutgoingSendError<T::Message, T::Error>,
}

// === impl Envelope ===

impl<T: Transport> Envelope<T> {
    /// True if its caller has stopped waiting.
    pub(super) fn is_withdrawn(&self) -> bool {
        self.ticket.waiter.as_ref().is_some_and(oneshot::Sender::is_closed)
    }

    /// Ends it without a delivery: its waiter gets it back, or else the caller of this does. One that was never
    /// sent and whose caller has left is nobody's: it was withdrawn.
    pub(super) fn fail(
        self,
        destination: &T::Destination,
        cause: SendFailure<T::Error>,
    ) -> Option<FailedMessage<T>> {
        if self.is_withdrawn() && self.ticket.attempts == 0 {
            return None;
        }
        let Ticket { class, attempts, maybe_delivered, waiter, .. } = self.ticket;
        let error = OutgoingSendError { message: self.message, cause, attempts, maybe_delivered };
        let error = match waiter {
            // A waiter that has left meanwhile returns it.
            Some(waiter) => waiter.send(Err(error)).err()?.err()?,
            None => error,
        };
        Some(FailedMessage { destination: destination.clone(), class, error })
    }
}

// === impl Ticket ===

impl<T: Transport> Ticket<T> {
    /// Ends it with a delivery.
    pub(super) fn succeed(self, reply: T::Reply) {
        if let Some(waiter) = self.waiter {
            // A caller that has left does not want the reply.
            let _ = waiter.send(Ok(reply));
        }
    }
}

// === impl FailedMessage ===

impl<T: Transport> fmt::Debug for FailedMessage<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FailedMessage")
            .field("destination", &self.destination)
            .field("class", &self.class)
            .field("error", &self.error)
            .finish()
    }
}
