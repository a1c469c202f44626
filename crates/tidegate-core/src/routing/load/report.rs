use serde::Serialize;

/// A load report of one rank of an upstream. A missing metric is `None`: unknown, not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LoadReport {
    /// Blocks of the KV cache in use.
    pub active_decode_blocks: Option<u64>,
    /// Blocks of the KV cache in all. Zero means that the server is still starting.
    pub kv_total_blocks: Option<u64>,
    /// Tokens being prefilled.
    pub active_prefill_tokens: Option<u64>,
    /// Requests being executed.
    pub running: Option<u64>,
    /// Requests in the server's own queue.
    pub waiting: Option<u64>,
    /// Tokens in a block, told with the number of blocks.
    pub tokens_per_block: Option<u64>,
}

/// The use of a KV cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KvUsage {
    /// The server does not report it.
    Unknown,
    /// No cache yet: the server is starting, and its zeros do not mean idle.
    NotReady,
    /// Blocks in use and in all.
    Blocks {
        /// In use.
        active: u64,
        /// In all, at least one.
        total: u64,
    },
}

// === impl LoadReport ===

impl LoadReport {
    /// Returns the use of the KV cache.
    #[must_use]
    pub fn kv(&self) -> KvUsage {
        match (self.active_decode_blocks, self.kv_total_blocks) {
            (_, Some(0)) => KvUsage::NotReady,
            (Some(active), Some(total)) => KvUsage::Blocks { active, total },
            _ => KvUsage::Unknown,
        }
    }

    /// Returns the blocks that the requests in the server's own queue will take: as many for each as a running
    /// request has now, and at least one. Blocks in use include none of theirs.
    #[must_use]
    pub fn waiting_blocks(&self) -> u64 {
        let active = self.active_decode_blocks.unwrap_or(0);
        let each = active.checked_div(self.running.unwrap_or(0)).unwrap_or(1).max(1);
        self.waiting.unwrap_or(0).saturating_mul(each)
    }

    /// Returns the requests at the server, executing and queued; `None` when it reports neither.
    #[must_use]
    pub fn requests(&self) -> Option<u64> {
        match (self.running, self.waiting) {
            (None, None) => None,
            (running, waiting) => Some(running.unwrap_or(0).saturating_add(waiting.unwrap_or(0))),
        }
    }

    /// Returns `true` if no field is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_of_a_server_that_has_no_cache_yet_are_not_idleness() {
        let of = |active, total| LoadReport {
            active_decode_blocks: active,
            kv_total_blocks: total,
            ..LoadReport::default()
        };
        assert_eq!(of(Some(0), Some(0)).kv(), KvUsage::NotReady);
        assert_eq!(of(None, Some(0)).kv(), KvUsage::NotReady);
        assert_eq!(of(Some(0), Some(9)).kv(), KvUsage::Blocks { active: 0, total: 9 });
        assert_eq!(of(Some(0), None).kv(), KvUsage::Unknown);
    }

    #[test]
    fn waiting_requests_take_what_running_ones_have() {
        let of = |active, running, waiting| LoadReport {
            active_decode_blocks: active,
            running,
            waiting,
            ..LoadReport::default()
        };
        assert_eq!(of(Some(80), Some(8), Some(3)).waiting_blocks(), 30);
        assert_eq!(of(Some(80), Some(8), None).waiting_blocks(), 0);
        assert_eq!(of(Some(0), Some(0), Some(3)).waiting_blocks(), 3);
        assert_eq!(of(None, None, Some(u64::MAX)).waiting_blocks(), u64::MAX);
    }

    #[test]
    fn requests_are_known_when_either_part_is() {
        let of = |running, waiting| LoadReport { running, waiting, ..LoadReport::default() };
        assert_eq!(of(None, None).requests(), None);
        assert_eq!(of(Some(3), None).requests(), Some(3));
        assert_eq!(of(Some(3), Some(4)).requests(), Some(7));
    }
}
