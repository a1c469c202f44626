use crate::store::tally::{Tallies, Tally, TallyKey};
use std::collections::BTreeMap;

/// Sums that are not stored yet. Those of a checkpoint under way are apart, so that it has an end while appends go
/// on.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    /// Sums of the blocks after the checkpoint under way.
    fresh: BTreeMap<TallyKey, Tally>,
    /// Sums that the checkpoint under way has still to write. It writes them in the order of their keys.
    frozen: BTreeMap<TallyKey, Tally>,
}

// === impl Recent ===

impl Recent {
    pub(super) fn merge(&mut self, tallies: Tallies) {
        merge(&mut self.fresh, tallies);
    }

    /// Adds sums of blocks of the checkpoint under way.
    pub(super) fn merge_frozen(&mut self, tallies: Tallies) {
        merge(&mut self.frozen, tallies);
    }

    /// Makes the fresh sums those of a checkpoint that begins. The one before has ended.
    pub(super) fn freeze(&mut self) {
        debug_assert!(self.frozen.is_empty(), "a checkpoint is under way");
        self.frozen = std::mem::take(&mut self.fresh);
    }

    /// The sums that the checkpoint writes next.
    pub(super) fn next_frozen(&self, count: usize) -> impl Iterator<Item = (&TallyKey, &Tally)> {
        self.frozen.iter().take(count)
    }

    /// Removes sums that have been written.
    pub(super) fn remove_frozen(&mut self, count: usize) {
        for _ in 0..count {
            self.frozen.pop_first();
        }
    }

    pub(super) fn frozen_len(&self) -> usize {
        self.frozen.len()
    }

    pub(super) fn fresh_len(&self) -> usize {
        self.fresh.len()
    }

    pub(super) fn len(&self) -> usize {
        self.fresh.len() + self.frozen.len()
    }

    /// All of them. A key may come twice.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&TallyKey, &Tally)> {
        self.frozen.iter().chain(&self.fresh)
    }
}

fn merge(into: &mut BTreeMap<TallyKey, Tally>, tallies: Tallies) {
    for (key, tally) in tallies {
        into.entry(key).or_default().add(&tally);
    }
}
