use super::connection::Connection;
use super::shares::Occupied;
use crate::channel::{Weigh, Weight};
use crate::store::PricedBatch;
use bytes::Bytes;
use std::sync::Arc;
use tidegate_core::frame::{Hello, RawFrame};
use tidegate_core::usage::{PricedRecord, UsageRecord};

/// A slot of what is not parsed yet, in bytes: about a record. How many records there are is known only after.
const SLOT_BYTES: usize = 64;

/// Bytes as they were read from a connection; `None` at its end.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub connection: Arc<Connection>,
    pub bytes: Option<Bytes>,
    pub occupied: Option<Occupied>,
}

/// A whole frame, or whole lines.
#[derive(Debug)]
pub(crate) struct Piece {
    pub connection: Arc<Connection>,
    pub content: Content,
    pub occupied: Occupied,
}

#[derive(Debug)]
pub(crate) enum Content {
    Frame(RawFrame),
    /// One or more lines, each with its end.
    Lines(Bytes),
}

/// Content of a piece.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub connection: Arc<Connection>,
    pub message: Message,
    pub occupied: Occupied,
}

#[derive(Debug)]
pub(crate) enum Message {
    Hello(Hello),
    Batch { seq: u64, settled: u64, records: Vec<UsageRecord> },
    Lines(Vec<UsageRecord>),
}

/// Order to the store.
#[derive(Debug)]
pub(crate) struct Priced {
    pub connection: Arc<Connection>,
    /// Position in the order in which batches were priced.
    pub number: u64,
    /// Its records count for tiers, and must not if the store refuses them.
    pub tiered: bool,
    pub order: Order,
    pub occupied: Occupied,
}

#[derive(Debug)]
pub(crate) enum Order {
    /// Greet the sender, once all before this is durable.
    Greet(Hello),
    /// Store the batch, and acknowledge it if it has a number.
    Persist(PricedBatch),
    /// Acknowledge a repeated batch, once the first one is durable.
    Repeat { seq: u64 },
}

// === impl Chunk ===

impl Weigh for Chunk {
    fn weight(&self) -> Weight {
        raw_weight(self.bytes.as_ref().map_or(0, Bytes::len))
    }
}

// === impl Piece ===

impl Piece {
    pub(crate) fn new(connection: &Arc<Connection>, content: Content) -> Self {
        let occupied = connection.share().occupy(content.bytes());
        Self { connection: Arc::clone(connection), content, occupied }
    }
}

impl Weigh for Piece {
    fn weight(&self) -> Weight {
        raw_weight(self.content.bytes())
    }
}

// === impl Content ===

impl Content {
    fn bytes(&self) -> usize {
        match self {
            Self::Frame(frame) => frame.frame_bytes(),
            Self::Lines(lines) => lines.len(),
        }
    }
}

// === impl Parsed ===

impl Weigh for Parsed {
    fn weight(&self) -> Weight {
        match &self.message {
            Message::Hello(_) => raw_weight(0),
            Message::Batch { records, .. } | Message::Lines(records) => {
                let labels = records.iter().map(|record| record.labels.len()).sum();
                records_weight(records.len(), size_of::<UsageRecord>(), labels)
            }
        }
    }
}

// === impl Priced ===

impl Weigh for Priced {
    fn weight(&self) -> Weight {
        match &self.order {
            Order::Greet(_) | Order::Repeat { .. } => raw_weight(0),
            Order::Persist(batch) => {
                let labels = batch.records.iter().map(|priced| priced.record.labels.len()).sum();
                records_weight(batch.records.len(), size_of::<PricedRecord>(), labels)
            }
        }
    }
}

/// Nothing is free: also an empty message takes a place.
fn raw_weight(bytes: usize) -> Weight {
    weight(bytes.div_ceil(SLOT_BYTES).max(1), bytes.max(SLOT_BYTES))
}

/// Tenants and meters are shared by many records and not counted with each; labels seldom are.
fn records_weight(count: usize, each_bytes: usize, labels_bytes: usize) -> Weight {
    weight(count.max(1), (count * each_bytes + labels_bytes).max(SLOT_BYTES))
}

fn weight(items: usize, bytes: usize) -> Weight {
    let fit = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Weight { items: fit(items), bytes: fit(bytes) }
}
