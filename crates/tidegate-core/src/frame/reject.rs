use super::cbor_reader::CborReader;
use super::cbor_writer::write_frame;
use super::text::cut;
use super::{FrameError, FrameKind, RawFrame};
use crate::signal::BackpressureSignal;
use bytes::Bytes;
use serde::Serialize;
use std::fmt;

/// This batch was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reject {
    /// Which one; 0 when its number could not be read, or when it is about the connection.
    pub seq: u64,
    /// Why not.
    pub reason: RejectReason,
    /// Send it again after this time; `None` when it is final and the same bytes would never be taken.
    pub retry_after_ms: Option<u32>,
    /// How much the receiver asks to hold back from now on.
    pub signal: BackpressureSignal,
    /// What exactly was wrong, for a log. At most [`Reject::MESSAGE_BYTES_MAX`] bytes, cut there when encoded.
    pub message: String,
}

/// Why a batch was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RejectReason {
    /// A length that no frame has. The connection is closed.
    BadFraming,
    /// Another version of the protocol. The connection is closed.
    UnknownVersion,
    /// A kind of frame that is not known, or not expected here.
    UnknownKind,
    /// A class that is not known, or above what a batch may claim.
    ClassRefused,
    /// A body that is not CBOR, or a record that can't be one. Nothing of the batch was taken.
    Malformed,
    /// More records or names than the receiver's hello allows.
    TooLarge,
    /// A batch before the hello.
    HelloExpected,
    /// A newer connection speaks for this sender. This one is closed.
    SenderTaken,
    /// More than 1,024 ahead of what is settled, or more batches in flight than the hello allows.
    TooFar,
    /// There is more than can be taken now.
    Overloaded,
    /// Small batches, where the signal asked for whole ones.
    Unbatched,
    /// The store does not take records now.
    StoreUnavailable,
    /// The receiver is about to end.
    ShuttingDown,
    /// One that this version does not know: [`Reject::retry_after_ms`] still says what to do.
    Other,
}

// === impl Reject ===

impl Reject {
    /// The longest message.
    pub const MESSAGE_BYTES_MAX: usize = 512;

    /// What is told for a frame that is wrong. It is final.
    #[must_use]
    pub fn of_error(seq: Option<u64>, error: &FrameError, signal: BackpressureSignal) -> Self {
        Self {
            seq: seq.unwrap_or(0),
            reason: error.reject_reason(),
            retry_after_ms: None,
            signal,
            message: format!("{}: {error}", error.reason()),
        }
    }

    /// Whether it makes no sense to send the batch again.
    #[must_use]
    pub fn is_final(&self) -> bool {
        self.retry_after_ms.is_none()
    }

    /// Appends the frame.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        write_frame(out, FrameKind::Reject, FrameKind::Reject.class(), |writer| {
            writer.array(5);
            writer.unsigned(self.seq);
            writer.text(self.reason.name());
            match self.retry_after_ms {
                Some(after_ms) => writer.unsigned(u64::from(after_ms)),
                None => writer.null(),
            }
            writer.signal(&self.signal);
            writer.text(cut(&self.message, Self::MESSAGE_BYTES_MAX));
        });
    }

    /// The frame by itself.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        self.encode_into(&mut out);
        out.into()
    }

    /// Reads one.
    ///
    /// # Errors
    ///
    /// When the frame is no reject, or its body not that of one.
    pub fn decode(frame: &RawFrame) -> Result<Self, FrameError> {
        frame.must_be(FrameKind::Reject)?;
        let mut reader = CborReader::new(&frame.body);
        reader.array_of(5, "a reject: an array of 5")?;
        let reject = Self {
            seq: reader.unsigned("the number of a batch")?,
            reason: RejectReason::from_name(reader.text("a reason, as text")?),
            retry_after_ms: reader.or_null(|reader| reader.u32("retry_after_ms, or null"))?,
            signal: reader.signal()?,
            message: cut(reader.text("a message, as text")?, Self::MESSAGE_BYTES_MAX).to_owned(),
        };
        reader.end()?;
        Ok(reject)
    }
}

impl fmt::Display for Reject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "batch {} was not taken ({}): {}", self.seq, self.reason, self.message)?;
        match self.retry_after_ms {
            Some(after_ms) => write!(f, "; send it again after {after_ms} ms"),
            None => f.write_str("; it would not be taken again either"),
        }
    }
}

// === impl RejectReason ===

impl RejectReason {
    /// Every reason.
    pub const ALL: [Self; 14] = [
        Self::BadFraming,
        Self::UnknownVersion,
        Self::UnknownKind,
        Self::ClassRefused,
        Self::Malformed,
        Self::TooLarge,
        Self::HelloExpected,
        Self::SenderTaken,
        Self::TooFar,
        Self::Overloaded,
        Self::Unbatched,
        Self::StoreUnavailable,
        Self::ShuttingDown,
        Self::Other,
    ];

    /// Its name in frames, labels and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BadFraming => "bad_framing",
            Self::UnknownVersion => "unknown_version",
            Self::UnknownKind => "unknown_kind",
            Self::ClassRefused => "class_refused",
            Self::Malformed => "malformed",
            Self::TooLarge => "too_large",
            Self::HelloExpected => "hello_expected",
            Self::SenderTaken => "sender_taken",
            Self::TooFar => "too_far",
            Self::Overloaded => "overloaded",
            Self::Unbatched => "unbatched",
            Self::StoreUnavailable => "store_unavailable",
            Self::ShuttingDown => "shutting_down",
            Self::Other => "other",
        }
    }

    /// What a name in a frame stands for; [`Other`](Self::Other) for one that is not known.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        Self::ALL.into_iter().find(|reason| reason.name() == name).unwrap_or(Self::Other)
    }

    /// This reason's place in an array.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
