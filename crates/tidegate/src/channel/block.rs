//! Implementation: messages that lie together in a channel.

use super::credit::credits::Credits;
use super::weight::Weigh;
use std::collections::VecDeque;

/// Number of individually sent messages that share a block.
pub(super) const BLOCK_MESSAGES: usize = 64;

/// Messages, and the credits of those that are not received yet.
pub(super) struct Block<T> {
    messages: VecDeque<T>,
    left: Credits,
}

// === impl Block ===

impl<T> Block<T> {
    pub(super) fn new(messages: VecDeque<T>, left: Credits) -> Self {
        Self { messages, left }
    }

    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    /// True if another message fits without moving the others.
    pub(super) fn has_room(&self) -> bool {
        self.messages.len() < BLOCK_MESSAGES.min(self.messages.capacity())
    }

    pub(super) fn credits(&self) -> Credits {
        self.left
    }

    pub(super) fn push(&mut self, message: T, charge: Credits) {
        self.messages.push_back(message);
        self.left += charge;
    }

    pub(super) fn into_parts(self) -> (VecDeque<T>, Credits) {
        (self.messages, self.left)
    }
}

impl<T: Weigh> Block<T> {
    /// The next message with its credits. The last one has what is left, so that a block returns exactly what it
    /// took, even if a message says another weight than before.
    pub(super) fn next(&mut self) -> Option<(T, Credits)> {
        let message = self.messages.pop_front()?;
        let credits = if self.messages.is_empty() {
            self.left
        } else {
            Credits::charge(message.weight()).min(self.left)
        };
        self.left -= credits;
        Some((message, credits))
    }
}
