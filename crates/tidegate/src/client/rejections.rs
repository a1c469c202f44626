use std::sync::atomic::{AtomicU64, Ordering};
use tidegate_core::frame::RejectReason;
use tidegate_core::usage::UsageRecord;
use tokio::sync::mpsc;

/// Where batches come back that will not be sent again.
///
/// Bounded: a batch that finds it full, or its receiver dropped, is counted in
/// [`ClientStats::rejections_lost`](super::ClientStats::rejections_lost).
#[derive(Debug)]
pub struct Rejections {
    receiver: mpsc::Receiver<RejectedBatch>,
}

/// A batch that will not be sent again, and is not durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedBatch {
    /// Its number.
    pub seq: u64,
    /// Why.
    pub cause: RejectCause,
    /// The records of the batch.
    pub records: Vec<UsageRecord>,
}

/// Why a batch will not be sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RejectCause {
    /// The server will never take it.
    Refused {
        /// Why.
        reason: RejectReason,
        /// The server's message.
        message: String,
    },
    /// The batch was telemetry, and the server signalled to drop non-critical data.
    Spared,
}

#[derive(Debug)]
pub(super) struct Reporter {
    sender: mpsc::Sender<RejectedBatch>,
    lost: AtomicU64,
}

// === impl Rejections ===

impl Rejections {
    /// The next one. `None` when the client has ended and all were read.
    ///
    /// # Cancel safety
    ///
    /// Dropped early, nothing is lost.
    pub async fn recv(&mut self) -> Option<RejectedBatch> {
        self.receiver.recv().await
    }

    /// The next one, if there is one now.
    pub fn try_recv(&mut self) -> Option<RejectedBatch> {
        self.receiver.try_recv().ok()
    }
}

// === impl Reporter ===

impl Reporter {
    pub(super) fn new(size: usize) -> (Self, Rejections) {
        let (sender, receiver) = mpsc::channel(size);
        (Self { sender, lost: AtomicU64::new(0) }, Rejections { receiver })
    }

    /// Reports a batch; `records` is called only if there is somebody to read them.
    pub(super) fn report(
        &self,
        seq: u64,
        cause: RejectCause,
        records: impl FnOnce() -> Vec<UsageRecord>,
    ) {
        match self.sender.try_reserve() {
            Ok(place) => place.send(RejectedBatch { seq, cause, records: records() }),
            Err(_) => {
                self.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}
