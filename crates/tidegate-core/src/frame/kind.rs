use crate::admission::{MessageClass, MessageKind};
use serde::Serialize;
use std::fmt;

/// Version of the protocol.
pub const PROTOCOL_VERSION: u8 = 1;

/// Length of the header in bytes: the length (4 bytes), the version, the kind and the class.
pub const HEADER_BYTES: usize = 7;

/// Kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum FrameKind {
    /// Identity and limits: the first frame in either direction.
    Hello = 1,
    /// Records, numbered by their sender.
    Batch = 2,
    /// Acknowledgement of durable batches.
    Ack = 3,
    /// Rejection of a batch.
    Reject = 4,
    /// First frame of a connection between a worker and its manager, in either direction.
    Join = 5,
    /// Cancellation of executions.
    Cancel = 6,
    /// Renewal of leases.
    Lease = 7,
    /// Executions to start, and reservations of slots.
    Execute = 8,
    /// State of a worker, and its answers to dispatches.
    State = 9,
    /// Progress, output and ends of executions.
    Progress = 10,
    /// Acknowledgement of progress, with a backpressure signal.
    ProgressAck = 11,
    /// Statistics of a worker.
    Stats = 12,
    /// Metrics of a worker for debugging.
    Debug = 13,
}

// === impl FrameKind ===

impl FrameKind {
    /// Every kind.
    pub const ALL: [Self; 13] = [
        Self::Hello,
        Self::Batch,
        Self::Ack,
        Self::Reject,
        Self::Join,
        Self::Cancel,
        Self::Lease,
        Self::Execute,
        Self::State,
        Self::Progress,
        Self::ProgressAck,
        Self::Stats,
        Self::Debug,
    ];

    /// Name in labels, responses and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hello => "hello",
            Self::Batch => "batch",
            Self::Ack => "ack",
            Self::Reject => "reject",
            Self::Join => "join",
            Self::Cancel => "cancel",
            Self::Lease => "lease",
            Self::Execute => "execute",
            Self::State => "state",
            Self::Progress => "progress",
            Self::ProgressAck => "progress_ack",
            Self::Stats => "stats",
            Self::Debug => "debug",
        }
    }

    /// Number in a frame.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Kind of a number in a frame.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }

    /// Row in the classification table.
    #[must_use]
    pub const fn message_kind(self) -> MessageKind {
        match self {
            Self::Hello => MessageKind::HelloFrame,
            Self::Batch => MessageKind::BatchFrame,
            Self::Ack => MessageKind::AckFrame,
            Self::Reject => MessageKind::RejectFrame,
            Self::Join => MessageKind::Membership,
            Self::Cancel => MessageKind::ExecutionCancel,
            Self::Lease => MessageKind::HandOver,
            Self::Execute => MessageKind::ExecutionDispatch,
            Self::State => MessageKind::StateSync,
            Self::Progress => MessageKind::ProgressUpdate,
            Self::ProgressAck => MessageKind::ProgressAck,
            Self::Stats => MessageKind::StatsUpdate,
            Self::Debug => MessageKind::DebugMetrics,
        }
    }

    /// Default class of the kind.
    #[must_use]
    pub const fn class(self) -> MessageClass {
        self.message_kind().class()
    }

    /// True if a frame of this kind may claim a class: its own or a lower one. Otherwise a sender could get its
    /// records served first by calling them control.
    #[must_use]
    pub const fn may_claim(self, class: MessageClass) -> bool {
        class.index() >= self.class().index()
    }
}

impl fmt::Display for FrameKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_survives_its_code() {
        for kind in FrameKind::ALL {
            assert_eq!(FrameKind::from_code(kind.code()), Some(kind));
        }
        assert_eq!((FrameKind::from_code(0), FrameKind::from_code(14)), (None, None));
    }

    #[test]
    fn a_batch_may_claim_less_than_its_class_and_never_more() {
        let allowed = MessageClass::ALL.map(|class| FrameKind::Batch.may_claim(class));
        assert_eq!(allowed, [false, false, true, true]);
        assert!(FrameKind::Hello.may_claim(MessageClass::Control));
    }
}
