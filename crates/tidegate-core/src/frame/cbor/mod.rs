//! CBOR items of frames: a strict reader over minicbor's decoder, and a writer of shortest forms.
//!
//! Uses the frame's errors and kinds. Must not know batches, acks or connections.

mod quantity;
mod reader;
mod writer;

pub(super) use quantity::{read_quantity, write_quantity};
pub(super) use reader::CborReader;
pub(super) use writer::{CborWriter, head_bytes, header, write_frame};
