use super::cbor::{CborReader, write_frame};
use super::{FrameError, FrameKind, RawFrame, SeqRanges};
use crate::signal::BackpressureSignal;
use bytes::Bytes;

/// Ack: these batches are durable, and their sender may forget them.
///
/// One ack names all batches that became durable together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Numbers of the batches: at most [`SEQ_WINDOW`](crate::sequence::SEQ_WINDOW).
    pub seqs: SeqRanges,
    /// Backpressure signal of the receiver.
    pub signal: BackpressureSignal,
}

// === impl Ack ===

impl Ack {
    /// Appends the frame to `out`.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        write_frame(out, FrameKind::Ack, FrameKind::Ack.class(), |writer| {
            writer.array(2);
            self.seqs.write(writer);
            writer.signal(&self.signal);
        });
    }

    /// Encodes the frame.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        self.encode_into(&mut out);
        out.into()
    }

    /// Appends as many frames as needed to name all of `seqs`, in any order and with repeats. Returns the number
    /// of frames: one for up to 1,024 batches, none for none.
    pub fn encode_all(seqs: &mut [u64], signal: BackpressureSignal, out: &mut Vec<u8>) -> usize {
        SeqRanges::parts(seqs).map(|seqs| Self { seqs, signal }.encode_into(out)).count()
    }

    /// Decodes an ack.
    ///
    /// # Errors
    ///
    /// If the frame is no ack, or its body is malformed.
    pub fn decode(frame: &RawFrame) -> Result<Self, FrameError> {
        frame.must_be(FrameKind::Ack)?;
        let mut reader = CborReader::new(&frame.body);
        reader.array_of(2, "an ack: an array of 2")?;
        let ack = Self { seqs: SeqRanges::read(&mut reader)?, signal: reader.signal()? };
        reader.end()?;
        Ok(ack)
    }
}
