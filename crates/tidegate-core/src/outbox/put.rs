use super::QueueState;
use crate::admission::MessageClass;
use crate::signal::BackpressureLevel;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// A message was taken. What the producer should know of the queue behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a message that was dropped to make room is in here"]
pub struct Put<T> {
    /// How full the queue is now.
    pub state: QueueState,
    /// What the producer is asked for.
    pub level: BackpressureLevel,
    /// How long the producer should wait before its next message.
    pub delay: Duration,
    /// The older message that made room for this one.
    pub dropped: Option<T>,
}

/// A message was not taken: here it is. The queue is as it was, but for the count of refusals.
#[derive(Clone, PartialEq, Eq)]
pub struct Refused<T> {
    /// The message.
    pub value: T,
    /// The class with which it was offered.
    pub class: MessageClass,
    /// Why it was not taken.
    pub reason: RefusedReason,
    /// How full the queue is.
    pub state: QueueState,
    /// How long to wait before trying again.
    pub delay: Duration,
}

/// Which bound a message met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusedReason {
    /// The lane of control messages is full.
    ControlLaneFull,
    /// Primary and overflow are full, and dispatch pushes nothing out.
    QueueFull,
    /// Primary and overflow are full of what is worth more than this message.
    NothingToDrop,
    /// The message was put back, and the queue has meanwhile filled with newer ones.
    NewerFilledQueue,
}

// === impl Refused ===

/// Without the message, which need not be printable.
impl<T> fmt::Debug for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused")
            .field("class", &self.class)
            .field("reason", &self.reason)
            .field("state", &self.state)
            .field("delay", &self.delay)
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Display for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (the queue is {}, wait {:?})", self.reason, self.state, self.delay)
    }
}

impl<T> std::error::Error for Refused<T> {}

// === impl RefusedReason ===

impl RefusedReason {
    /// Every reason.
    pub const ALL: [Self; 4] =
        [Self::ControlLaneFull, Self::QueueFull, Self::NothingToDrop, Self::NewerFilledQueue];

    /// The name used in labels and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ControlLaneFull => "control_lane_full",
            Self::QueueFull => "queue_full",
            Self::NothingToDrop => "nothing_to_drop",
            Self::NewerFilledQueue => "newer_filled_queue",
        }
    }
}

impl fmt::Display for RefusedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ControlLaneFull => {
                "the lane of control messages is full: the destination answers none, treat it as gone"
            }
            Self::QueueFull => {
                "the destination's queue is full: send it to another destination or try again later"
            }
            Self::NothingToDrop => {
                "the destination's queue is full of what is worth more: keep it, merge it or let it go"
            }
            Self::NewerFilledQueue => {
                "the destination's queue has filled with newer messages: keep it or let it go"
            }
        })
    }
}
