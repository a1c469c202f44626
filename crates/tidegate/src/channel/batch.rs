//! Implementation: how much of a batch goes at a time.

use super::credits::Credits;
use super::entry::Entry;
use super::waiters::Ask;
use super::weight::Weigh;
use std::collections::VecDeque;
use std::mem;

/// The most messages that a sender waits to send together: more would hardly be cheaper, and later.
const WAIT_FOR_MAX: usize = 64;
/// The largest part of a window that they may take: four who wait can all be served from a full one.
const WAIT_FOR_PART: i64 = 4;

/// A caller's messages on their way. Whatever ends this, those that were not sent are the caller's again.
pub(super) struct Batch<'a, T> {
    theirs: &'a mut Vec<T>,
    /// From a vector and back without moving a message, unless some of it was sent.
    left: VecDeque<T>,
    /// How many messages were chosen last.
    chosen: usize,
}

// === impl Batch ===

impl<'a, T> Batch<'a, T> {
    pub(super) fn new(theirs: &'a mut Vec<T>) -> Self {
        let left = VecDeque::from(mem::take(theirs));
        Self { theirs, left, chosen: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    pub(super) fn chosen(&self) -> usize {
        self.chosen
    }

    /// The first `count`, which is not 0, as what the queue holds.
    pub(super) fn take(&mut self, count: usize, taken: Credits) -> Entry<T> {
        Entry::many(self.left.drain(..count).collect(), taken)
    }
}

impl<T: Weigh> Batch<'_, T> {
    /// As many from the front as there is room for, and what they take together.
    pub(super) fn choose(&mut self, room: Credits) -> Option<Credits> {
        self.choose_within(room, usize::MAX)
    }

    /// What to wait for.
    pub(super) fn ask(&mut self, granted: Credits) -> Ask {
        let least = self.left.front().map_or(Credits::NONE, |first| charge(first));
        match self.choose_within(granted.divided_by(WAIT_FOR_PART), WAIT_FOR_MAX) {
            Some(most) => Ask { least, most },
            None => {
                self.chosen = 1;
                Ask { least, most: least }
            }
        }
    }

    fn choose_within(&mut self, room: Credits, count_max: usize) -> Option<Credits> {
        let mut total = Credits::NONE;
        self.chosen = 0;
        for message in self.left.iter().take(count_max) {
            let next = total + charge(message);
            if !next.fits(room) {
                break;
            }
            total = next;
            self.chosen += 1;
        }
        (self.chosen > 0).then_some(total)
    }
}

impl<T> Drop for Batch<'_, T> {
    fn drop(&mut self) {
        *self.theirs = Vec::from(mem::take(&mut self.left));
    }
}

fn charge(message: &impl Weigh) -> Credits {
    Credits::charge(message.weight())
}
