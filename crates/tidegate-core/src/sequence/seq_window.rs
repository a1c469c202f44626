use std::fmt;

/// Distance that a sender's batch numbers may run ahead of its oldest unsettled batch.
pub const SEQ_WINDOW: u64 = 1024;

/// Highest number at which a sender may begin anew, however far it is from what is settled.
///
/// A sender that has not stored its numbers continues with the time in nanoseconds, which is below this until the
/// year 2116. As many numbers again, and more, stay free above it: no jump uses them up.
pub const SEQ_RESTART_MAX: u64 = 1 << 62;

const WORDS: usize = (SEQ_WINDOW / 64) as usize;

/// Batches of one sender that have been seen.
///
/// All numbers up to `low` are done; each of the next [`SEQ_WINDOW`] is tracked individually. Batches may arrive
/// out of order, twice, or never (if their sender gave them up and [settled](SeqWindow::settle) them), and each
/// counts once.
///
/// ```
/// use tidegate_core::sequence::{SeqStatus, SeqWindow};
///
/// let mut window = SeqWindow::default();
/// assert_eq!(window.record(2), SeqStatus::New);
/// assert_eq!(window.record(1), SeqStatus::New);
/// assert_eq!(window.record(2), SeqStatus::Duplicate);
/// assert_eq!(window.low(), 2);
/// assert_eq!(window.record(5_000), SeqStatus::TooFar);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeqWindow {
    low: u64,
    /// Bit `seq % SEQ_WINDOW` of a `seq` in `low + 1 ..= low + SEQ_WINDOW`.
    bits: [u64; WORDS],
}

/// Status of a number in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeqStatus {
    /// Not seen before.
    New,
    /// Seen before, or settled by its sender.
    Duplicate,
    /// More than [`SEQ_WINDOW`] ahead: the sender must settle older numbers first.
    TooFar,
}

/// Error for bytes that are no window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeqWindowError {
    /// Number of bytes given.
    pub length: usize,
}

// === impl SeqWindow ===

impl SeqWindow {
    /// Length of [`to_bytes`](Self::to_bytes), in bytes.
    pub const BYTES: usize = 8 + WORDS * 8;

    /// Number up to which all are done.
    #[must_use]
    pub fn low(&self) -> u64 {
        self.low
    }

    /// Highest number seen or settled: the next one is free.
    #[must_use]
    pub fn highest(&self) -> u64 {
        let last = self.low.saturating_add(SEQ_WINDOW);
        (self.low.saturating_add(1)..=last).rev().find(|seq| self.is_set(*seq)).unwrap_or(self.low)
    }

    /// Status of a number, without a change. Numbers begin at 1: 0 counts as seen.
    #[must_use]
    pub fn status(&self, seq: u64) -> SeqStatus {
        if seq <= self.low {
            SeqStatus::Duplicate
        } else if seq - self.low > SEQ_WINDOW {
            SeqStatus::TooFar
        } else if self.is_set(seq) {
            SeqStatus::Duplicate
        } else {
            SeqStatus::New
        }
    }

    /// Marks a number as seen, and returns its status before.
    pub fn record(&mut self, seq: u64) -> SeqStatus {
        let seen = self.status(seq);
        if seen == SeqStatus::New {
            self.bits[word(seq)] |= bit(seq);
            self.advance();
        }
        seen
    }

    /// Settles all numbers up to `through`: their sender will not send them again.
    pub fn settle(&mut self, through: u64) {
        if through <= self.low {
            return;
        }
        if through - self.low >= SEQ_WINDOW {
            self.bits = [0; WORDS];
        } else {
            for seq in self.low + 1..=through {
                self.bits[word(seq)] &= !bit(seq);
            }
        }
        self.low = through;
        self.advance();
    }

    /// Serialises the window for a store.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let words = std::iter::once(&self.low).chain(&self.bits);
        for (chunk, word) in bytes.chunks_exact_mut(8).zip(words) {
            chunk.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    /// Deserialises the result of [`to_bytes`](Self::to_bytes).
    ///
    /// # Errors
    ///
    /// If the number of bytes is wrong.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SeqWindowError> {
        if bytes.len() != Self::BYTES {
            return Err(SeqWindowError { length: bytes.len() });
        }
        let mut words = bytes
            .chunks_exact(8)
            .map(|chunk| chunk.iter().fold(0_u64, |word, byte| word << 8 | u64::from(*byte)));
        let low = words.next().unwrap_or_default();
        let mut window = Self { low, bits: [0; WORDS] };
        for (bits, word) in window.bits.iter_mut().zip(words) {
            *bits = word;
        }
        Ok(window)
    }

    fn is_set(&self, seq: u64) -> bool {
        self.bits[word(seq)] & bit(seq) != 0
    }

    fn advance(&mut self) {
        while self.low < u64::MAX && self.is_set(self.low + 1) {
            self.low += 1;
            self.bits[word(self.low)] &= !bit(self.low);
        }
    }
}

fn word(seq: u64) -> usize {
    (seq % SEQ_WINDOW / 64) as usize
}

fn bit(seq: u64) -> u64 {
    1 << (seq % 64)
}

// === impl SeqWindowError ===

impl fmt::Display for SeqWindowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a sequence window has {} bytes, not {}", SeqWindow::BYTES, self.length)
    }
}

impl std::error::Error for SeqWindowError {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_last_number_does_not_overflow() {
        let mut window = SeqWindow::default();
        window.settle(u64::MAX - 1);
        assert_eq!(window.record(u64::MAX), SeqStatus::New);
        assert_eq!(window.record(u64::MAX), SeqStatus::Duplicate);
    }

    #[test]
    fn settling_keeps_what_was_seen_beyond() {
        let mut window = SeqWindow::default();
        window.record(10);
        window.record(12);
        window.settle(9);
        assert_eq!(
            (window.low(), window.status(11), window.status(12)),
            (10, SeqStatus::New, SeqStatus::Duplicate)
        );
    }

    proptest! {
        /// Against a set that remembers everything: each number is new once, whatever the order.
        #[test]
        fn each_number_is_new_once(
            steps in prop::collection::vec((any::<bool>(), 1_u64..3_000), 1..400),
        ) {
            let (mut window, mut seen, mut settled) = (SeqWindow::default(), BTreeSet::new(), 0);
            for (settle, seq) in steps {
                if settle {
                    settled = settled.max(seq);
                    window.settle(seq);
                    continue;
                }
                let expected = match window.status(seq) {
                    SeqStatus::TooFar => {
                        prop_assert!(seq > window.low() + SEQ_WINDOW);
                        SeqStatus::TooFar
                    }
                    _ if seq <= settled || seen.contains(&seq) => SeqStatus::Duplicate,
                    _ => SeqStatus::New,
                };
                prop_assert_eq!(window.record(seq), expected);
                if expected == SeqStatus::New { seen.insert(seq); }
            }
            let highest = seen.last().copied().unwrap_or(0).max(window.low());
            prop_assert_eq!(window.highest(), highest);
            prop_assert_eq!(SeqWindow::from_bytes(&window.to_bytes()), Ok(window));
        }
    }
}
