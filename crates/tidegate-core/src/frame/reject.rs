use super::cbor::{CborReader, write_frame};
use super::text::cut;
use super::{FrameError, FrameKind, RawFrame, RejectReason};
use crate::signal::BackpressureSignal;
use bytes::Bytes;
use std::fmt;

/// Rejection of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reject {
    /// Number of the batch; 0 if unreadable, or if the rejection concerns the connection.
    pub seq: u64,
    /// Reason of the rejection.
    pub reason: RejectReason,
    /// Delay before the batch is sent again; `None` if the rejection is final, because the same bytes would be
    /// rejected again.
    pub retry_after_ms: Option<u32>,
    /// Backpressure signal of the receiver.
    pub signal: BackpressureSignal,
    /// Details for a log. At most [`Reject::MESSAGE_BYTES_MAX`] bytes, truncated when encoded.
    pub message: String,
}

// === impl Reject ===

impl Reject {
    /// Maximum length of the message, in bytes.
    pub const MESSAGE_BYTES_MAX: usize = 512;

    /// Final rejection of an invalid frame.
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

    /// True if sending the batch again can't succeed.
    #[must_use]
    pub fn is_final(&self) -> bool {
        self.retry_after_ms.is_none()
    }

    /// Appends the frame to `out`.
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

    /// Encodes the frame.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        self.encode_into(&mut out);
        out.into()
    }

    /// Decodes a reject.
    ///
    /// # Errors
    ///
    /// If the frame is no reject, or its body is malformed.
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
        write!(f, "batch {} was rejected ({}): {}", self.seq, self.reason, self.message)?;
        match self.retry_after_ms {
            Some(after_ms) => write!(f, "; retry after {after_ms} ms"),
            None => f.write_str("; do not retry"),
        }
    }
}
