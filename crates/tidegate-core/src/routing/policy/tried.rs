/// The upstreams that one request was offered to: at most [`TriedUpstreams::MOST`]. A short list beats a set.
///
/// ```
/// use tidegate_core::routing::TriedUpstreams;
///
/// let mut tried = TriedUpstreams::default();
/// tried.insert(7);
/// assert_eq!((tried.ids(), tried.is_full()), (&[7][..], false));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct TriedUpstreams<Id> {
    ids: [Id; MOST],
    count: u8,
}

const MOST: usize = 3;

// === impl TriedUpstreams ===

impl<Id: Copy> TriedUpstreams<Id> {
    /// A request that failed at this many upstreams fails: further retries are load without a chance of success.
    pub const MOST: usize = MOST;

    /// Returns the upstreams that were tried.
    #[must_use]
    pub fn ids(&self) -> &[Id] {
        &self.ids[..usize::from(self.count)]
    }

    /// Records a try. Does nothing once it is full.
    pub fn insert(&mut self, id: Id) {
        if let Some(slot) = self.ids.get_mut(usize::from(self.count)) {
            *slot = id;
            self.count += 1;
        }
    }

    /// Returns `true` if no further upstream may be tried.
    #[must_use]
    pub fn is_full(&self) -> bool {
        usize::from(self.count) == Self::MOST
    }
}
