/// The channel takes no more messages: its receiver was closed or dropped. Nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the channel takes no more messages: its receiver is closed or gone")]
pub struct Closed;

/// A message was not sent, because the channel takes no more: here it is.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not sent: the channel takes no more messages, its receiver is closed or gone")]
pub struct SendError<T>(pub T);

/// A message was not sent at once: here it is.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TrySendError<T> {
    /// There is no room for it, or others have waited longer. Try again later, or wait with `send`.
    #[error("not sent: the window is full; wait with `send`, or try again later")]
    Full(T),
    /// The channel takes no more messages.
    #[error("not sent: the channel takes no more messages, its receiver is closed or gone")]
    Closed(T),
}

/// A message was not sent into the slot that was reserved: here it is. The slot's credits are returned.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SlotError<T> {
    /// The message weighs more than was reserved. Reserve its weight.
    #[error("not sent: the message weighs more than what was reserved for it; reserve its weight")]
    TooHeavy(T),
    /// The receiver is gone.
    #[error("not sent: the channel's receiver is gone")]
    Closed(T),
}

/// Nothing was received at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TryRecvError {
    /// Nothing is queued now. More may come.
    #[error("nothing is queued now")]
    Empty,
    /// Nothing is queued, and nothing will come: all senders are gone, or the receiver was closed.
    #[error("nothing is queued, and nothing more will come")]
    Disconnected,
}

// === impl SendError ===

impl<T> SendError<T> {
    /// The message.
    pub fn into_inner(self) -> T {
        self.0
    }
}

/// Without the message, which need not be printable.
impl<T> std::fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SendError").finish_non_exhaustive()
    }
}

// === impl TrySendError ===

impl<T> TrySendError<T> {
    /// The message.
    pub fn into_inner(self) -> T {
        match self {
            Self::Full(message) | Self::Closed(message) => message,
        }
    }

    /// True if a retry may succeed.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        matches!(self, Self::Full(_))
    }
}

/// Without the message, which need not be printable.
impl<T> std::fmt::Debug for TrySendError<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.is_full() { "Full(..)" } else { "Closed(..)" })
    }
}

// === impl SlotError ===

impl<T> SlotError<T> {
    /// The message.
    pub fn into_inner(self) -> T {
        match self {
            Self::TooHeavy(message) | Self::Closed(message) => message,
        }
    }
}

/// Without the message, which need not be printable.
impl<T> std::fmt::Debug for SlotError<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let heavy = matches!(self, Self::TooHeavy(_));
        f.write_str(if heavy { "TooHeavy(..)" } else { "Closed(..)" })
    }
}
