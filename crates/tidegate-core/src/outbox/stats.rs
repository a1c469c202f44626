use super::QueueState;
use crate::signal::BackpressureLevel;
use serde::Serialize;

/// Snapshot of one queue: its content, and totals of all messages.
///
/// At any time `total_enqueued + total_put_back` is the sum of messages taken out, dropped and still queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct QueueStats {
    /// Messages in the primary.
    pub primary_size: usize,
    /// Messages in the overflow.
    pub overflow_size: usize,
    /// Control messages, which are in neither.
    pub control_size: usize,
    /// Fill of the queue.
    pub state: QueueState,
    /// Backpressure level for its producers.
    pub backpressure_level: BackpressureLevel,
    /// Messages accepted.
    pub total_enqueued: u64,
    /// Messages put back after a failed send; they don't count as enqueued again.
    pub total_put_back: u64,
    /// Messages accepted and then dropped: the sum of the next two.
    pub total_dropped: u64,
    /// Data messages dropped.
    pub data_dropped: u64,
    /// Telemetry messages dropped.
    pub telemetry_dropped: u64,
    /// Messages refused and returned.
    pub total_refused: u64,
}

/// Totals of a destination's sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SenderStats {
    /// Messages being sent.
    pub in_flight: usize,
    /// Messages delivered.
    pub total_sent: u64,
    /// Messages given up, each returned to its caller.
    pub total_failed: u64,
    /// Messages whose caller stopped waiting before they were sent.
    pub total_withdrawn: u64,
    /// Messages sent again.
    pub total_retried: u64,
}

/// Snapshot of one destination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DestinationQueueStats {
    /// Name or address.
    pub destination_host: String,
    /// Port.
    pub destination_port: u16,
    /// Queue of the destination.
    #[serde(flatten)]
    pub queue: QueueStats,
    /// Sender of the destination.
    #[serde(flatten)]
    pub sender: SenderStats,
}
