use super::BackpressureLevel;
use serde::Serialize;

/// What a receiver asks of a sender, in every answer it gives.
///
/// It holds for [`ttl_ms`](Self::ttl_ms) from when it came: a receiver that went silent asks for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BackpressureSignal {
    /// How much to hold back.
    pub level: BackpressureLevel,
    /// How long to wait before each send.
    pub delay_ms: u32,
    /// Merge small updates, and send only whole batches.
    pub batch_only: bool,
    /// Keep back what can be spared.
    pub drop_non_critical: bool,
    /// For how long this holds.
    pub ttl_ms: u32,
}
