use super::MessagePriority;

const LANE_BITS: u32 = 16;
const LANE_MASK: u64 = (1 << LANE_BITS) - 1;

/// The four in-flight counts, packed in one word so that all of them are read and changed in one atomic step.
///
/// Each lane has 16 bits. Limits are at most 65,535, so the lanes of High, Normal and Low can't overflow. Critical
/// has no limit: its lane stops at 65,535, and the tracker counts the rest in a separate word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes(u64);

// === impl Lanes ===

impl Lanes {
    pub(super) const EMPTY: Self = Self(0);
    pub(super) const LANE_MAX: u32 = LANE_MASK as u32;

    pub(super) const fn from_word(word: u64) -> Self {
        Self(word)
    }

    pub(super) const fn word(self) -> u64 {
        self.0
    }

    /// One message of this priority, as a number to add to or subtract from the word.
    pub(super) const fn unit(priority: MessagePriority) -> u64 {
        1 << (LANE_BITS * priority as u32)
    }

    /// Messages of this priority in flight.
    #[inline]
    #[must_use]
    pub const fn of(self, priority: MessagePriority) -> u32 {
        ((self.0 >> (LANE_BITS * priority as u32)) & LANE_MASK) as u32
    }

    /// Messages in flight in all.
    #[must_use]
    pub fn total(self) -> u32 {
        MessagePriority::ALL.into_iter().map(|priority| self.of(priority)).sum()
    }

    #[cfg(test)]
    pub(super) fn from_counts(counts: [u16; 4]) -> Self {
        let word = MessagePriority::ALL
            .into_iter()
            .map(|priority| u64::from(counts[priority.index()]) * Self::unit(priority))
            .sum();
        Self(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_do_not_touch_each_other() {
        let lanes = Lanes::from_counts([u16::MAX, 1, u16::MAX, 2]);
        assert_eq!(MessagePriority::ALL.map(|priority| lanes.of(priority)), [65_535, 1, 65_535, 2]);
        assert_eq!(lanes.total(), 65_535 * 2 + 3);
    }
}
