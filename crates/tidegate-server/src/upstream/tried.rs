/// The upstreams that one request has been offered to. A request tries few, so a short list beats a set.
#[derive(Clone, Debug, Default)]
pub struct Tried {
    indexes: [Option<usize>; Tried::MOST],
}

// === impl Tried ===

impl Tried {
    /// A request that failed on this many upstreams fails: beyond that, retries are load without hope.
    pub const MOST: usize = 3;

    /// Whether this upstream was tried.
    #[must_use]
    pub fn contains(&self, index: usize) -> bool {
        self.indexes.contains(&Some(index))
    }

    /// Records a try. Once full, says so by returning false.
    pub fn insert(&mut self, index: usize) -> bool {
        match self.indexes.iter_mut().find(|slot| slot.is_none()) {
            Some(slot) => {
                *slot = Some(index);
                true
            }
            None => false,
        }
    }

    /// Whether no further upstream may be tried.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.indexes.iter().all(Option::is_some)
    }
}
