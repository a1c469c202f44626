use super::QueueState;
use crate::admission::MessageClass;
use crate::signal::BackpressureLevel;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// Result of an accepted message: the state of the queue after it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a message that was dropped to make room is in here"]
pub struct Put<T> {
    /// Fill of the queue now.
    pub state: QueueState,
    /// Backpressure level for the producer.
    pub level: BackpressureLevel,
    /// Delay before the producer's next message.
    pub delay: Duration,
    /// Older message that was dropped for this one.
    pub dropped: Option<T>,
}

/// Refusal of a message, which it returns. The queue is unchanged, except for the count of refusals.
#[derive(Clone, PartialEq, Eq)]
pub struct Refused<T> {
    /// The message.
    pub value: T,
    /// Class of the message.
    pub class: MessageClass,
    /// Reason of the refusal.
    pub reason: RefusedReason,
    /// Fill of the queue.
    pub state: QueueState,
    /// Delay before a retry.
    pub delay: Duration,
}

/// Bound that a message met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusedReason {
    /// The lane of control messages is full.
    ControlLaneFull,
    /// Primary and overflow are full, and dispatch replaces nothing.
    QueueFull,
    /// Primary and overflow are full of messages that this class can't replace.
    NothingToDrop,
    /// The message was put back, and newer messages have filled the queue meanwhile.
    NewerFilledQueue,
}

// === impl Refused ===

/// Omits the message, which need not be printable.
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

    /// Name in labels and logs.
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
                "the control lane is full: the destination does not respond, treat it as down"
            }
            Self::QueueFull => {
                "the destination's queue is full: use another destination or retry later"
            }
            Self::NothingToDrop => {
                "the destination's queue is full of higher classes: keep, merge or drop the message"
            }
            Self::NewerFilledQueue => {
                "newer messages have filled the destination's queue: keep or drop the message"
            }
        })
    }
}
