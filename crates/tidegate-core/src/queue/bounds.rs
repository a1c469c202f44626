/// The bounds of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueBounds {
    /// Requests that may wait.
    pub count: usize,
    /// Bytes of requests that may wait.
    pub bytes: u64,
    /// Of this many requests served, one may be of a lower band although a higher one waits; 0 for never. Prevents
    /// starvation of the lower bands.
    pub starvation_guard: u32,
}

// === impl QueueBounds ===

impl Default for QueueBounds {
    /// 1,024 requests, 64 MiB, strict bands.
    fn default() -> Self {
        // 64 KiB, the most that a gateway buffers of a request, for each of 1,024.
        Self { count: 1024, bytes: 64 * 1024 * 1024, starvation_guard: 0 }
    }
}
