use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::outbox::{QueueState, RefusedReason};

/// A message that was not accepted, with the reason.
pub struct EnqueueError<M> {
    /// The message.
    pub message: M,
    /// Why it was not taken.
    pub reason: EnqueueReason,
    /// State of the destination's queue; healthy without a queue.
    pub state: QueueState,
    /// Wait before the next attempt.
    pub delay: Duration,
}

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnqueueReason {
    /// The destination's queue refused it.
    Refused(RefusedReason),
    /// There are as many destinations as there may be, and none of them is empty and idle.
    TooManyDestinations {
        /// As many as there may be.
        max: usize,
    },
    /// The manager is shutting down, or its runtime has ended.
    Closed,
}

/// A message that is not known to be delivered, with the cause.
pub struct OutgoingSendError<M, E> {
    /// The message.
    pub message: M,
    /// The cause.
    pub cause: SendFailure<E>,
    /// Number of times that it was sent.
    pub attempts: u32,
    /// True if it may have been delivered and only the answer was lost. Sending it again may then deliver it
    /// twice.
    pub maybe_delivered: bool,
}

/// Cause of a failed send.
#[derive(Debug)]
pub enum SendFailure<E> {
    /// The queue did not accept it.
    NotTaken(EnqueueReason),
    /// Newer messages filled the queue and took its place.
    Displaced,
    /// Its deadline passed before it could be sent.
    Expired,
    /// The last attempt did not end in time.
    TimedOut,
    /// The last attempt failed. Shared by all messages of its batch.
    Transport(Arc<E>),
    /// The transport panicked.
    Panicked,
    /// The transport said that the batch was delivered, and had no reply for this message.
    NoReply,
    /// The manager was shut down, or dropped.
    Closed,
}

// === impl EnqueueError ===

impl<M> EnqueueError<M> {
    /// The same as the end of a message that was to be waited for.
    pub(super) fn into_send_error<E>(self) -> OutgoingSendError<M, E> {
        let cause = SendFailure::NotTaken(self.reason);
        OutgoingSendError { message: self.message, cause, attempts: 0, maybe_delivered: false }
    }
}

/// Without the message, which need not be printable.
impl<M> fmt::Debug for EnqueueError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnqueueError")
            .field("reason", &self.reason)
            .field("state", &self.state)
            .field("delay", &self.delay)
            .finish_non_exhaustive()
    }
}

impl<M> fmt::Display for EnqueueError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl<M> std::error::Error for EnqueueError<M> {}

// === impl EnqueueReason ===

impl fmt::Display for EnqueueReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(reason) => reason.fmt(f),
            Self::TooManyDestinations { max } => write!(
                f,
                "all {max} destinations have messages waiting: \
                 try again when one is empty, or raise max_destinations"
            ),
            Self::Closed => f.write_str("the manager takes no more messages: it is shutting down"),
        }
    }
}

// === impl OutgoingSendError ===

/// Without the message, which need not be printable.
impl<M, E: fmt::Debug> fmt::Debug for OutgoingSendError<M, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutgoingSendError")
            .field("cause", &self.cause)
            .field("attempts", &self.attempts)
            .field("maybe_delivered", &self.maybe_delivered)
            .finish_non_exhaustive()
    }
}

impl<M, E> fmt::Display for OutgoingSendError<M, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let attempts = self.attempts;
        let doubt = if self.maybe_delivered { "; it may have been delivered" } else { "" };
        write!(f, "not delivered after {attempts} attempts: {}{doubt}", self.cause)
    }
}

impl<M, E: std::error::Error + 'static> std::error::Error for OutgoingSendError<M, E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.cause {
            SendFailure::Transport(error) => Some(error.as_ref()),
            _ => None,
        }
    }
}

// === impl SendFailure ===

impl<E> Clone for SendFailure<E> {
    fn clone(&self) -> Self {
        match self {
            Self::NotTaken(reason) => Self::NotTaken(*reason),
            Self::Displaced => Self::Displaced,
            Self::Expired => Self::Expired,
            Self::TimedOut => Self::TimedOut,
            Self::Transport(error) => Self::Transport(Arc::clone(error)),
            Self::Panicked => Self::Panicked,
            Self::NoReply => Self::NoReply,
            Self::Closed => Self::Closed,
        }
    }
}

impl<E> fmt::Display for SendFailure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotTaken(reason) => return reason.fmt(f),
            Self::Displaced => "newer messages took its place in a full queue",
            Self::Expired => "its deadline passed while it waited",
            Self::TimedOut => "the last attempt did not end in time",
            // The error itself is the source; printed here too it would stand twice in a report.
            Self::Transport(_) => "the transport failed",
            Self::Panicked => "the transport panicked",
            Self::NoReply => "the transport had no reply for it",
            Self::Closed => "the manager has ended",
        })
    }
}
