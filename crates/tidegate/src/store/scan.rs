use super::StoreError;
use tidegate_core::usage::PricedRecord;
use tokio::sync::mpsc;

/// Number of blocks of records queued for their reader: one to read, and one in preparation.
const BLOCKS_WAITING: usize = 2;

/// Records as they were stored, in blocks, roughly in the order of their times.
///
/// Reading goes on in the background only as far as blocks are taken. Dropping this ends it.
#[derive(Debug)]
pub struct Records {
    blocks: mpsc::Receiver<Result<Vec<PricedRecord>, StoreError>>,
}

/// Where a store puts the blocks.
pub(crate) type RecordsSender = mpsc::Sender<Result<Vec<PricedRecord>, StoreError>>;

// === impl Records ===

impl Records {
    pub(crate) fn channel() -> (RecordsSender, Self) {
        let (sender, blocks) = mpsc::channel(BLOCKS_WAITING);
        (sender, Self { blocks })
    }

    /// These records, in one block: for a store that has them at hand.
    #[must_use]
    pub fn of(records: Vec<PricedRecord>) -> Self {
        let (sender, all) = Self::channel();
        if !records.is_empty() {
            // Nothing waits in it yet, so there is room.
            let _ = sender.try_send(Ok(records));
        }
        all
    }

    /// The next block; `None` when all were read.
    ///
    /// # Errors
    ///
    /// When the store can't be read. Nothing follows then.
    ///
    /// # Cancel safety
    ///
    /// Dropped early, no block is lost.
    pub async fn next(&mut self) -> Option<Result<Vec<PricedRecord>, StoreError>> {
        self.blocks.recv().await
    }
}
