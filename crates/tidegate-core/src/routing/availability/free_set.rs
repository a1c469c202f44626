use crate::sync::{AtomicU64, Ordering};
use std::ops::Range;

/// A lock-free set of small numbers, one bit each: the upstreams that have room.
#[derive(Debug)]
pub struct FreeSet {
    words: Vec<AtomicU64>,
    size: usize,
    /// The number of members. A moment behind the words while a number is added or removed.
    count: AtomicU64,
}

// === impl FreeSet ===

impl FreeSet {
    /// Creates an empty set of numbers below `size`.
    #[must_use]
    pub fn new(size: usize) -> Self {
        let words = (0..size.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Self { words, size, count: AtomicU64::new(0) }
    }

    /// Returns a bound of the numbers: the size, rounded up to whole words.
    #[must_use]
    pub fn range(&self) -> usize {
        self.words.len() * 64
    }

    /// Adds or removes a number. A number beyond the size is ignored.
    pub fn set(&self, number: usize, member: bool) {
        let Some(word) = self.words.get(number / 64) else { return };
        let bit = 1 << (number % 64);
        if member && word.fetch_or(bit, Ordering::Release) & bit == 0 {
            self.count.fetch_add(1, Ordering::Relaxed);
        } else if !member && word.fetch_and(!bit, Ordering::Release) & bit != 0 {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Returns `true` if the set contains a number.
    #[must_use]
    pub fn contains(&self, number: usize) -> bool {
        self.word(number / 64) >> (number % 64) & 1 == 1
    }

    /// Returns the number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed) as usize
    }

    /// Returns `true` if the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        (0..self.words.len()).all(|index| self.word(index) == 0)
    }

    /// Returns the member at this position in ascending order; `None` if there are fewer members, also because
    /// some left meanwhile.
    #[must_use]
    pub fn nth(&self, mut position: usize) -> Option<usize> {
        if self.len() == self.size && position < self.size {
            // Without gaps a position is its number.
            return Some(position);
        }
        for index in 0..self.words.len() {
            let mut word = self.word(index);
            let ones = word.count_ones() as usize;
            if position >= ones {
                position -= ones;
                continue;
            }
            for _ in 0..position {
                word &= word - 1;
            }
            return Some(index * 64 + word.trailing_zeros() as usize);
        }
        None
    }

    /// Returns the first member at or after this number, or else the first member.
    #[must_use]
    pub fn next_from(&self, number: usize) -> Option<usize> {
        self.first_in(number..usize::MAX).or_else(|| self.first_in(0..number))
    }

    /// Returns the first member in this range.
    #[must_use]
    pub fn first_in(&self, range: Range<usize>) -> Option<usize> {
        let Range { start, end } = range;
        let words = start / 64..end.div_ceil(64).min(self.words.len());
        let found = words.into_iter().find_map(|index| {
            let mask = if index == start / 64 { !0 << (start % 64) } else { !0 };
            let word = self.word(index) & mask;
            (word != 0).then(|| index * 64 + word.trailing_zeros() as usize)
        });
        found.filter(|number| *number < end)
    }

    /// Returns an iterator over the members, each word as it is when it is reached.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        (0..self.words.len()).flat_map(move |index| {
            let mut word = self.word(index);
            std::iter::from_fn(move || {
                (word != 0).then(|| {
                    let bit = word.trailing_zeros() as usize;
                    word &= word - 1;
                    index * 64 + bit
                })
            })
        })
    }

    fn word(&self, index: usize) -> u64 {
        self.words.get(index).map_or(0, |word| word.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_by_place_and_by_number() {
        let set = FreeSet::new(200);
        for number in [3, 64, 130, 199] {
            set.set(number, true);
        }
        assert_eq!((set.len(), set.iter().collect::<Vec<_>>()), (4, vec![3, 64, 130, 199]));
        let places: Vec<_> = (0..5).map(|place| set.nth(place)).collect();
        assert_eq!(places, [Some(3), Some(64), Some(130), Some(199), None]);
        assert_eq!([set.next_from(4), set.next_from(64), set.next_from(0)], [64, 64, 3].map(Some));
        assert_eq!([set.first_in(4..64), set.first_in(4..65)], [None, Some(64)]);
        assert_eq!([set.first_in(200..300), set.first_in(3..3)], [None, None]);
        set.set(199, false);
        assert_eq!(set.next_from(131), Some(3), "round again");
        assert!(set.contains(130) && !set.contains(199) && !set.contains(9_999));
    }

    #[test]
    fn a_set_without_gaps_and_one_with_a_gap_count_and_find_alike() {
        let set = FreeSet::new(100);
        for number in (0..100).chain(0..100) {
            set.set(number, true);
        }
        assert_eq!((set.len(), set.nth(77), set.nth(100)), (100, Some(77), None));
        set.set(40, false);
        set.set(40, false);
        assert_eq!(
            (set.len(), set.nth(39), set.nth(40), set.nth(99)),
            (99, Some(39), Some(41), None)
        );
    }

    #[test]
    fn an_empty_set_has_nobody() {
        for set in [FreeSet::new(0), FreeSet::new(70)] {
            set.set(500, true);
            assert!(set.is_empty());
            assert_eq!((set.nth(0), set.next_from(0), set.iter().next()), (None, None, None));
        }
    }
}
