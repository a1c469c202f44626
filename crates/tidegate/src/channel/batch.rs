//! Implementation: how much of a batch goes at a time.

use super::block::{BLOCK_MESSAGES, Block};
use super::credit::credits::{Credits, Sum};
use super::credit::waiters::Ask;
use super::weight::Weigh;
use std::collections::VecDeque;
use std::mem;

/// The most messages that a sender waits to send together: more would hardly be cheaper, and later.
const WAIT_FOR_MAX: usize = 64;
/// The largest part of a window that they may take: four who wait can all be served from a full one.
const WAIT_FOR_PART: i64 = 4;
/// A larger batch is copied: its buffer is the caller's, and too large to lie around.
const WHOLE_MAX: usize = 4 * BLOCK_MESSAGES;

/// A caller's messages on their way. Whatever ends this, those that were not sent are the caller's again.
pub(super) struct Batch<'a, T> {
    theirs: &'a mut Vec<T>,
    /// From a vector and back without moving a message, unless some of it was sent.
    left: VecDeque<T>,
    /// Credits of all messages that are left.
    total: Sum,
    /// Number of messages chosen last.
    chosen: usize,
}

// === impl Batch ===

impl<T> Batch<'_, T> {
    pub(super) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    pub(super) fn chosen(&self) -> usize {
        self.chosen
    }

    /// The first `count`, which is not 0. Few that are all there is go with their buffer: the caller gets another
    /// in [`exchange`](Self::exchange).
    pub(super) fn take(&mut self, count: usize, taken: Credits) -> Block<T> {
        let whole = count == self.left.len() && count <= WHOLE_MAX;
        let messages =
            if whole { mem::take(&mut self.left) } else { self.left.drain(..count).collect() };
        self.total = self.total.plus(-taken);
        Block::new(messages, taken)
    }

    /// A buffer for the one that went.
    pub(super) fn exchange(&mut self, spare: Option<VecDeque<T>>, count: usize) {
        if self.left.capacity() == 0 {
            let capacity = count.max(BLOCK_MESSAGES);
            self.left = spare.unwrap_or_else(|| VecDeque::with_capacity(capacity));
        }
    }

    /// Puts a block back that the channel did not accept.
    pub(super) fn put_back(&mut self, block: Block<T>) {
        let (mut messages, credits) = block.into_parts();
        messages.append(&mut self.left);
        self.left = messages;
        self.total = self.total.plus(credits);
    }
}

impl<'a, T: Weigh> Batch<'a, T> {
    pub(super) fn new(theirs: &'a mut Vec<T>) -> Self {
        let total = theirs.iter().map(Weigh::weight).fold(Sum::default(), Sum::charge);
        let left = VecDeque::from(mem::take(theirs));
        Self { theirs, left, total, chosen: 0 }
    }

    /// As many from the front as there is room for, and what they take together.
    pub(super) fn choose(&mut self, room: Credits) -> Option<Credits> {
        self.choose_within(room, usize::MAX)
    }

    /// The credits to wait for.
    pub(super) fn ask(&mut self, granted: Credits) -> Ask {
        let least =
            self.left.front().map_or(Credits::NONE, |first| Credits::charge(first.weight()));
        match self.choose_within(granted.divided_by(WAIT_FOR_PART), WAIT_FOR_MAX) {
            Some(most) => Ask { least, most },
            None => {
                self.chosen = 1;
                Ask { least, most: least }
            }
        }
    }

    fn choose_within(&mut self, room: Credits, count_max: usize) -> Option<Credits> {
        if self.left.len() <= count_max
            && let Some(all) = self.total.within(room)
        {
            self.chosen = self.left.len();
            return Some(all);
        }
        let (mut sum, mut chosen) = (Sum::default(), None);
        self.chosen = 0;
        for message in self.left.iter().take(count_max) {
            sum = sum.charge(message.weight());
            let Some(more) = sum.within(room) else { break };
            chosen = Some(more);
            self.chosen += 1;
        }
        chosen
    }
}

impl<T> Drop for Batch<'_, T> {
    fn drop(&mut self) {
        *self.theirs = Vec::from(mem::take(&mut self.left));
    }
}
