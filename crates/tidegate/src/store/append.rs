use super::{NAME_BYTES_MAX, StoreError};
use std::sync::Arc;
use tidegate_core::sequence::SEQ_WINDOW;
use tidegate_core::usage::PricedRecord;

/// Records that come and are stored together.
#[derive(Clone, Debug, PartialEq)]
pub struct PricedBatch {
    /// Who sent it under which number; `None` where the protocol has no numbers, so that a repeat can't be told.
    pub origin: Option<Origin>,
    /// What it holds.
    pub records: Vec<PricedRecord>,
}

/// A batch's name: the same sender and number are the same batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Who sent it.
    pub sender: Arc<str>,
    /// Its number, from 1 on.
    pub seq: u64,
    /// The sender will send none up to this number again.
    pub settled: u64,
}

/// What became of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// It is durable now.
    New,
    /// It was durable before, and was not counted again.
    Repeat,
    /// It was not stored, and never will be as it is. The other batches of the call are not touched by that.
    Refused(Refused),
}

/// Why a store takes a batch at no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Its number is too far ahead: its sender must settle older ones first.
    #[error("the batch's number is more than {SEQ_WINDOW} ahead of the oldest that is not settled")]
    TooFar,
    /// A sender's, tenant's or meter's name is longer than [`NAME_BYTES_MAX`](super::NAME_BYTES_MAX).
    #[error("a sender's, tenant's or meter's name is longer than {NAME_BYTES_MAX} bytes")]
    NameTooLong,
}

/// Nothing of these batches was stored.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Unstored {
    /// What was not stored, as it was given.
    pub batches: Vec<PricedBatch>,
    /// Why.
    #[source]
    pub error: StoreError,
}
