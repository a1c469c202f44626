use super::QueueState;
use crate::signal::BackpressureLevel;
use serde::Serialize;

/// A snapshot of one queue: what it holds, and what became of all that was put into it.
///
/// At any time `total_enqueued + total_put_back` is what was taken out, was dropped or is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct QueueStats {
    /// Messages in the primary.
    pub primary_size: usize,
    /// Messages behind the primary.
    pub overflow_size: usize,
    /// Control messages, which are in neither.
    pub control_size: usize,
    /// How full it is.
    pub state: QueueState,
    /// What its producers are asked for.
    pub backpressure_level: BackpressureLevel,
    /// Messages that were accepted.
    pub total_enqueued: u64,
    /// Messages that were put back after a failed send; none of them counts as enqueued again.
    pub total_put_back: u64,
    /// Messages that were accepted and then dropped to make room: the two below together.
    pub total_dropped: u64,
    /// Data that was dropped.
    pub data_dropped: u64,
    /// Telemetry that was dropped.
    pub telemetry_dropped: u64,
    /// Messages that were handed back instead of being accepted.
    pub total_refused: u64,
}

/// What the sender of a destination has done with what it took from the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SenderStats {
    /// Messages that are being sent.
    pub in_flight: usize,
    /// Messages that were delivered.
    pub total_sent: u64,
    /// Messages that were given up, each handed back.
    pub total_failed: u64,
    /// Messages whose caller stopped waiting before they were sent.
    pub total_withdrawn: u64,
    /// Attempts that were made again, in messages.
    pub total_retried: u64,
}

/// A snapshot of one destination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DestinationQueueStats {
    /// Name or address.
    pub destination_host: String,
    /// Port.
    pub destination_port: u16,
    /// Its queue.
    #[serde(flatten)]
    pub queue: QueueStats,
    /// Its sender.
    #[serde(flatten)]
    pub sender: SenderStats,
}
