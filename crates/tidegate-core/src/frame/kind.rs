use crate::admission::{MessageClass, MessageKind};
use serde::Serialize;
use std::fmt;

/// The version of the protocol that this is.
pub const PROTOCOL_VERSION: u8 = 1;

/// What stands before the body: the length (4 bytes), the version, the kind and the class.
pub const HEADER_BYTES: usize = 7;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum FrameKind {
    /// Who speaks, and within what limits: the first frame in either direction.
    Hello = 1,
    /// Records, numbered by their sender.
    Batch = 2,
    /// These batches are durable.
    Ack = 3,
    /// This batch was not taken.
    Reject = 4,
}

// === impl FrameKind ===

impl FrameKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Hello, Self::Batch, Self::Ack, Self::Reject];

    /// The name used in labels, answers and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hello => "hello",
            Self::Batch => "batch",
            Self::Ack => "ack",
            Self::Reject => "reject",
        }
    }

    /// The byte that stands for it in a frame.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// What a byte in a frame stands for.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }

    /// Its row in the one table of classification.
    #[must_use]
    pub const fn message_kind(self) -> MessageKind {
        match self {
            Self::Hello => MessageKind::HelloFrame,
            Self::Batch => MessageKind::BatchFrame,
            Self::Ack => MessageKind::AckFrame,
            Self::Reject => MessageKind::RejectFrame,
        }
    }

    /// The class of a frame that claims no lower one.
    #[must_use]
    pub const fn class(self) -> MessageClass {
        self.message_kind().class()
    }

    /// Whether a frame of this kind may claim a class: its own or a lower one. Otherwise a sender could have its
    /// records served before everybody else's by calling them control.
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
        assert_eq!((FrameKind::from_code(0), FrameKind::from_code(5)), (None, None));
    }

    #[test]
    fn a_batch_may_claim_less_than_its_class_and_never_more() {
        let allowed = MessageClass::ALL.map(|class| FrameKind::Batch.may_claim(class));
        assert_eq!(allowed, [false, false, true, true]);
        assert!(FrameKind::Hello.may_claim(MessageClass::Control));
    }
}
