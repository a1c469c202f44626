use serde::Serialize;

/// What one rank of a worker says of its load. A field that its kind of server does not tell is `None`, which is
/// not zero: nothing is concluded from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LoadReport {
    /// Blocks of the KV cache in use.
    pub active_decode_blocks: Option<u64>,
    /// Blocks of the KV cache there are. Zero says that the server is not ready yet.
    pub kv_total_blocks: Option<u64>,
    /// Tokens that are being prefilled.
    pub active_prefill_tokens: Option<u64>,
    /// Requests that are being worked on.
    pub running: Option<u64>,
    /// Requests that wait in the server's own queue.
    pub waiting: Option<u64>,
}

/// How full a KV cache is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KvUsage {
    /// The server does not tell.
    Unknown,
    /// It has no cache yet: it is still starting, and its zeros do not mean idle.
    NotReady,
    /// This many blocks of so many.
    Blocks {
        /// In use.
        active: u64,
        /// In all, at least one.
        total: u64,
    },
}

// === impl LoadReport ===

impl LoadReport {
    /// How full the KV cache is.
    #[must_use]
    pub fn kv(&self) -> KvUsage {
        match (self.active_decode_blocks, self.kv_total_blocks) {
            (_, Some(0)) => KvUsage::NotReady,
            (Some(active), Some(total)) => KvUsage::Blocks { active, total },
            _ => KvUsage::Unknown,
        }
    }

    /// Requests that the server has, worked on and waiting; `None` when it tells neither.
    #[must_use]
    pub fn requests(&self) -> Option<u64> {
        match (self.running, self.waiting) {
            (None, None) => None,
            (running, waiting) => Some(running.unwrap_or(0).saturating_add(waiting.unwrap_or(0))),
        }
    }

    /// Whether it says anything at all.
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
    fn requests_are_known_when_either_part_is() {
        let of = |running, waiting| LoadReport { running, waiting, ..LoadReport::default() };
        assert_eq!(of(None, None).requests(), None);
        assert_eq!(of(Some(3), None).requests(), Some(3));
        assert_eq!(of(Some(3), Some(4)).requests(), Some(7));
    }
}
