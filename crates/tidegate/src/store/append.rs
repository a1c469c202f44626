use super::{NAME_BYTES_MAX, StoreError};
use std::sync::Arc;
use tidegate_core::sequence::SEQ_WINDOW;
use tidegate_core::usage::PricedRecord;

/// Begins the source of what a client sent with its token.
pub(crate) const CLIENT_SOURCE: &str = "client/";

/// Records that come and are stored together.
#[derive(Clone, Debug, PartialEq)]
pub struct PricedBatch {
    /// Sender and number; `None` where the protocol has no numbers, so that a repeat can't be detected.
    pub origin: Option<Origin>,
    /// The client or the sender to whom new series are counted: `client/NAME` for the holder of a token, to whom
    /// the usage counts too.
    pub source: Arc<str>,
    /// Its records.
    pub records: Vec<PricedRecord>,
}

/// A batch's name: the same sender and number are the same batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The sender.
    pub sender: Arc<str>,
    /// The client that sends under this name: empty without a token, `None` while no tokens are configured. The
    /// first one owns the name.
    pub owner: Option<Arc<str>>,
    /// Its number, from 1 on.
    pub seq: u64,
    /// The sender will send none up to this number again.
    pub settled: u64,
}

/// Result of appending a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// The batch is durable now.
    New,
    /// The batch was durable before, and was not counted again.
    Repeat,
    /// The batch was not stored, and a repetition does not help. Other batches of the call are unaffected.
    Refused(BatchRefusal),
}

/// Reason for which a store refuses a batch for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchRefusal {
    /// Its number is too far ahead: its sender must settle older ones first.
    #[error("the batch's number is more than {SEQ_WINDOW} ahead of the oldest that is not settled")]
    TooFar,
    /// The name of its sender belongs to another client.
    #[error("the sender's name belongs to another client: use a name of your own")]
    SenderOwned,
    /// The day's sum of a tenant's meter would be beyond what a decimal number holds.
    #[error(
        "the sum of a tenant's meter would be beyond 7.9e28 in one day: correct the record, or split the meter"
    )]
    SumOverflow,
    /// Its sender has begun as many series as it may.
    #[error(
        "the sender may begin {limit} series, each a tenant and a meter, and these are more: raise \
         ingest.series_per_sender_max"
    )]
    TooManySeriesOfSource {
        /// The bound.
        limit: u64,
    },
    /// The store has as many series as it may.
    #[error(
        "the store may have {limit} series, each a tenant and a meter, and these are more: raise \
         ingest.series_max"
    )]
    TooManySeries {
        /// The bound.
        limit: u64,
    },
    /// A sender's, tenant's or meter's name is longer than [`NAME_BYTES_MAX`](super::NAME_BYTES_MAX).
    #[error("a sender's, tenant's or meter's name is longer than {NAME_BYTES_MAX} bytes")]
    NameTooLong,
}

// === impl PricedBatch ===

impl PricedBatch {
    /// Name of the client whose token delivered the batch; empty without a token.
    #[must_use]
    pub fn client(&self) -> &str {
        self.source.strip_prefix(CLIENT_SOURCE).unwrap_or_default()
    }
}

/// Nothing of these batches was stored.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Unstored {
    /// The batches, unchanged.
    pub batches: Vec<PricedBatch>,
    /// Why.
    #[source]
    pub error: StoreError,
}
