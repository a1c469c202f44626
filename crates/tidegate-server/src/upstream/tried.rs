use tidegate::routing::WorkerId;

/// The upstreams that one request has been offered to. A request tries few, so a short list beats a set.
#[derive(Clone, Debug)]
pub struct Tried {
    ids: [WorkerId; Tried::MOST],
    count: usize,
}

// === impl Tried ===

impl Default for Tried {
    fn default() -> Self {
        Self { ids: [WorkerId(usize::MAX); Self::MOST], count: 0 }
    }
}

impl Tried {
    /// A request that failed on this many upstreams fails: beyond that, retries are load without hope.
    pub const MOST: usize = 3;

    /// Those that were tried.
    #[must_use]
    pub fn ids(&self) -> &[WorkerId] {
        &self.ids[..self.count]
    }

    /// Records a try. Nothing is recorded once it is full.
    pub fn insert(&mut self, id: WorkerId) {
        if let Some(slot) = self.ids.get_mut(self.count) {
            *slot = id;
            self.count += 1;
        }
    }

    /// Whether no further upstream may be tried.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.count == Self::MOST
    }
}
