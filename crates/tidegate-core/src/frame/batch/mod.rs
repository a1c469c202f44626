//! Batches of usage records: the frame, its builder and its table of names.
//!
//! Uses CBOR items, limits and errors of frames. Must not know acks, connections or stores.

mod batch_frame;
mod builder;
mod name_table;

pub use batch_frame::Batch;
pub use builder::{BatchBuilder, BatchPushError};
