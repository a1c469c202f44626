use super::StoreError;
use std::sync::Arc;
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
