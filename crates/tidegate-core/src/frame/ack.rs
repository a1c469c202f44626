use super::cbor_reader::CborReader;
use super::cbor_writer::write_frame;
use super::{FrameError, FrameKind, RawFrame, SeqRanges};
use crate::signal::BackpressureSignal;
use bytes::Bytes;

/// These batches are durable, now or from before: their sender may forget them.
///
/// One answer for as many batches as became durable together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Which ones: [`SEQ_WINDOW`](crate::sequence::SEQ_WINDOW) at the most.
    pub seqs: SeqRanges,
    /// How much the receiver asks to hold back from now on.
    pub signal: BackpressureSignal,
}

// === impl Ack ===

impl Ack {
    /// Appends the frame.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        write_frame(out, FrameKind::Ack, FrameKind::Ack.class(), |writer| {
            writer.array(2);
            self.seqs.write(writer);
            writer.signal(&self.signal);
        });
    }

    /// The frame by itself.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        self.encode_into(&mut out);
        out.into()
    }

    /// Appends as many frames as it takes to name all of these, in any order and with repeats. Tells how many
    /// frames: none for none, one for up to 1,024 batches.
    pub fn encode_all(seqs: &mut [u64], signal: BackpressureSignal, out: &mut Vec<u8>) -> usize {
        SeqRanges::parts(seqs).map(|seqs| Self { seqs, signal }.encode_into(out)).count()
    }

    /// Reads one.
    ///
    /// # Errors
    ///
    /// When the frame is no ack, or its body not that of one.
    pub fn decode(frame: &RawFrame) -> Result<Self, FrameError> {
        frame.must_be(FrameKind::Ack)?;
        let mut reader = CborReader::new(&frame.body);
        reader.array_of(2, "an ack: an array of 2")?;
        let ack = Self { seqs: SeqRanges::read(&mut reader)?, signal: reader.signal()? };
        reader.end()?;
        Ok(ack)
    }
}
