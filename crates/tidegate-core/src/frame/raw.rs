use super::cbor::header;
use super::{FrameError, FrameKind, HEADER_BYTES};
use crate::admission::MessageClass;
use bytes::Bytes;
use minicbor::Decoder;

/// Complete frame with an unparsed body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawFrame {
    /// Kind of the frame.
    pub kind: FrameKind,
    /// Class of the frame: decides the order of shedding.
    pub class: MessageClass,
    /// CBOR body. Shares the memory of the network read.
    pub body: Bytes,
}

// === impl RawFrame ===

impl RawFrame {
    /// Length on the wire, in bytes.
    #[must_use]
    pub fn frame_bytes(&self) -> usize {
        HEADER_BYTES + self.body.len()
    }

    /// Appends a frame with the default class of its kind, whose body `write` appends.
    ///
    /// # Errors
    ///
    /// The error of `write`; then nothing is appended.
    pub fn append<E>(
        out: &mut Vec<u8>,
        kind: FrameKind,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = out.len();
        out.extend_from_slice(&header(0, kind, kind.class()));
        if let Err(error) = write(out) {
            out.truncate(start);
            return Err(error);
        }
        let body_bytes = out.len() - start - HEADER_BYTES;
        out[start..start + HEADER_BYTES].copy_from_slice(&header(body_bytes, kind, kind.class()));
        Ok(())
    }

    /// Number of a batch, or of the batch that a reject names. The cost does not depend on the body's length, so
    /// that a batch can be refused by its number at once.
    #[must_use]
    pub fn peek_seq(&self) -> Option<u64> {
        match self.kind {
            FrameKind::Batch | FrameKind::Reject => peek_seq(&self.body),
            _ => None,
        }
    }

    /// Creates a frame from the bytes after the version: the kind, the class and the body.
    pub(super) fn read(kind: u8, class: u8, body: Bytes) -> Result<Self, FrameError> {
        let kind = FrameKind::from_code(kind).ok_or(FrameError::UnknownKind { given: kind })?;
        let class = *MessageClass::ALL
            .get(usize::from(class))
            .ok_or(FrameError::UnknownClass { given: class })?;
        let frame = Self { kind, class, body };
        if kind.may_claim(class) {
            Ok(frame)
        } else {
            Err(FrameError::ClassTooHigh { kind, class, seq: frame.peek_seq() })
        }
    }

    pub(super) fn must_be(&self, expected: FrameKind) -> Result<(), FrameError> {
        if self.kind == expected {
            Ok(())
        } else {
            Err(FrameError::WrongKind { expected, given: self.kind })
        }
    }
}

fn peek_seq(body: &[u8]) -> Option<u64> {
    let mut decoder = Decoder::new(body);
    decoder.array().ok().flatten()?;
    decoder.u64().ok()
}
