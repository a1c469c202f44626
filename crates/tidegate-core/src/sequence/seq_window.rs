use std::fmt;

/// How far ahead of the oldest batch that is not settled a sender may number its batches.
pub const SEQ_WINDOW: u64 = 1024;

const WORDS: usize = (SEQ_WINDOW / 64) as usize;

/// The batches of one sender that have been seen.
///
/// All up to `low` are over; beyond it each of the next [`SEQ_WINDOW`] is remembered by itself. So batches may
/// come out of order, twice, or never (when their sender gave them up and [settled](SeqWindow::settle) them),
/// and each still counts once.
///
/// ```
/// use tidegate_core::sequence::{Seen, SeqWindow};
///
/// let mut window = SeqWindow::default();
/// assert_eq!(window.see(2), Seen::New);
/// assert_eq!(window.see(1), Seen::New);
/// assert_eq!(window.see(2), Seen::Before);
/// assert_eq!(window.low(), 2);
/// assert_eq!(window.see(5_000), Seen::TooFar);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeqWindow {
    low: u64,
    /// Bit `seq % SEQ_WINDOW` of a `seq` in `low + 1 ..= low + SEQ_WINDOW`.
    bits: [u64; WORDS],
}

/// What a number is to a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It was not seen before.
    New,
    /// It was, or its sender has settled it.
    Before,
    /// It is more than [`SEQ_WINDOW`] ahead: its sender must settle older ones first.
    TooFar,
}

/// Bytes that are not those of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotASeqWindow {
    /// How many bytes there were.
    pub length: usize,
}

// === impl SeqWindow ===

impl SeqWindow {
    /// How many bytes [`to_bytes`](Self::to_bytes) gives.
    pub const BYTES: usize = 8 + WORDS * 8;

    /// All numbers up to this one are over.
    #[must_use]
    pub fn low(&self) -> u64 {
        self.low
    }

    /// The greatest number that was seen or settled: the next one is free.
    #[must_use]
    pub fn highest(&self) -> u64 {
        let last = self.low.saturating_add(SEQ_WINDOW);
        (self.low.saturating_add(1)..=last).rev().find(|seq| self.is_set(*seq)).unwrap_or(self.low)
    }

    /// What a number is, with nothing changed. Numbers begin at 1: 0 was always seen.
    #[must_use]
    pub fn look(&self, seq: u64) -> Seen {
        if seq <= self.low {
            Seen::Before
        } else if seq - self.low > SEQ_WINDOW {
            Seen::TooFar
        } else if self.is_set(seq) {
            Seen::Before
        } else {
            Seen::New
        }
    }

    /// What a number is; from now on it has been seen.
    pub fn see(&mut self, seq: u64) -> Seen {
        let seen = self.look(seq);
        if seen == Seen::New {
            self.bits[word(seq)] |= bit(seq);
            self.advance();
        }
        seen
    }

    /// Its sender will send none up to this number again, seen or not.
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

    /// As bytes, for a store.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let words = std::iter::once(&self.low).chain(&self.bits);
        for (chunk, word) in bytes.chunks_exact_mut(8).zip(words) {
            chunk.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    /// What [`to_bytes`](Self::to_bytes) gave.
    ///
    /// # Errors
    ///
    /// When there are more or fewer bytes than a window has.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, NotASeqWindow> {
        if bytes.len() != Self::BYTES {
            return Err(NotASeqWindow { length: bytes.len() });
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

// === impl NotASeqWindow ===

impl fmt::Display for NotASeqWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a window of numbers has {} bytes, not {}", SeqWindow::BYTES, self.length)
    }
}

impl std::error::Error for NotASeqWindow {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_last_number_does_not_overflow() {
        let mut window = SeqWindow::default();
        window.settle(u64::MAX - 1);
        assert_eq!(window.see(u64::MAX), Seen::New);
        assert_eq!(window.see(u64::MAX), Seen::Before);
    }

    #[test]
    fn settling_keeps_what_was_seen_beyond() {
        let mut window = SeqWindow::default();
        window.see(10);
        window.see(12);
        window.settle(9);
        assert_eq!((window.low(), window.look(11), window.look(12)), (10, Seen::New, Seen::Before));
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
                let expected = match window.look(seq) {
                    Seen::TooFar => { prop_assert!(seq > window.low() + SEQ_WINDOW); Seen::TooFar }
                    _ if seq <= settled || seen.contains(&seq) => Seen::Before,
                    _ => Seen::New,
                };
                prop_assert_eq!(window.see(seq), expected);
                if expected == Seen::New { seen.insert(seq); }
            }
            let highest = seen.last().copied().unwrap_or(0).max(window.low());
            prop_assert_eq!(window.highest(), highest);
            prop_assert_eq!(SeqWindow::from_bytes(&window.to_bytes()), Ok(window));
        }
    }
}
