//! Implementation: what the queue holds. A chunk is one entry of it, so that many messages cost what one does.

use super::credits::Credits;
use super::weight::Weigh;
use std::vec;

pub(super) enum Entry<T> {
    One(T, Credits),
    Many(Chunk<T>),
}

/// Messages that were sent together, and what they took and have not been received with.
pub(super) struct Chunk<T> {
    messages: vec::IntoIter<T>,
    left: Credits,
}

// === impl Entry ===

impl<T> Entry<T> {
    /// Of at least one message.
    pub(super) fn many(messages: Vec<T>, taken: Credits) -> Self {
        Self::Many(Chunk { messages: messages.into_iter(), left: taken })
    }

    pub(super) fn credits(&self) -> Credits {
        match self {
            Self::One(_, credits) => *credits,
            Self::Many(chunk) => chunk.left,
        }
    }
}

// === impl Chunk ===

impl<T> Chunk<T> {
    pub(super) fn credits(&self) -> Credits {
        self.left
    }

    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    /// All that is left.
    pub(super) fn drain_into(self, out: &mut Vec<T>) -> Credits {
        out.extend(self.messages);
        self.left
    }
}

impl<T: Weigh> Chunk<T> {
    /// The next message with its credits. The last one has what is left, so that a chunk returns exactly what it
    /// took, even if a message says another weight than before.
    pub(super) fn next(&mut self) -> Option<(T, Credits)> {
        let message = self.messages.next()?;
        let credits = if self.messages.len() == 0 {
            self.left
        } else {
            Credits::charge(message.weight()).min(self.left)
        };
        self.left -= credits;
        Some((message, credits))
    }
}
