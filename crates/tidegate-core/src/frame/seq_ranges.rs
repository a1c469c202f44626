use super::FrameError;
use super::cbor::{CborReader, CborWriter};
use crate::sequence::SEQ_WINDOW;
use std::ops::RangeInclusive;

/// Batch numbers as ordered, disjoint ranges: batches that become durable together are mostly consecutive.
///
/// ```
/// use tidegate_core::frame::SeqRanges;
///
/// let seqs: SeqRanges = [7, 3, 4, 5, 4].into_iter().collect();
/// assert_eq!(seqs.ranges(), [3..=5, 7..=7]);
/// assert_eq!(seqs.iter().collect::<Vec<_>>(), [3, 4, 5, 7]);
/// assert!(seqs.contains(4) && !seqs.contains(6));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeqRanges(Vec<RangeInclusive<u64>>);

// === impl SeqRanges ===

impl SeqRanges {
    /// Ranges, in order.
    #[must_use]
    pub fn ranges(&self) -> &[RangeInclusive<u64>] {
        &self.0
    }

    /// Each number, in order. At most [`SEQ_WINDOW`] after decoding.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        self.0.iter().cloned().flatten()
    }

    /// True if a number is among them.
    #[must_use]
    pub fn contains(&self, seq: u64) -> bool {
        let behind = self.0.partition_point(|range| *range.end() < seq);
        self.0.get(behind).is_some_and(|range| range.contains(&seq))
    }

    /// True if there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of batch numbers.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.iter().fold(0, |sum: u64, range| {
            sum.saturating_add((range.end() - range.start()).saturating_add(1))
        })
    }

    /// Splits numbers into parts of at most [`SEQ_WINDOW`], the limit of one ack.
    pub(super) fn parts(seqs: &mut [u64]) -> impl Iterator<Item = Self> {
        seqs.sort_unstable();
        seqs.chunks(SEQ_WINDOW as usize).map(Self::of_sorted)
    }

    pub(super) fn write(&self, writer: &mut CborWriter<'_>) {
        writer.array(self.0.len());
        for range in &self.0 {
            writer.array(2);
            writer.unsigned(*range.start());
            writer.unsigned(*range.end());
        }
    }

    pub(super) fn read(reader: &mut CborReader<'_>) -> Result<Self, FrameError> {
        let at = reader.position();
        let count = reader.array("ranges: an array of [first, last]")?;
        if count > SEQ_WINDOW {
            return Err(FrameError::BadBody { at, expected: "at most 1,024 ranges" });
        }
        let mut ranges = Self(Vec::with_capacity(count as usize));
        for _ in 0..count {
            let at = reader.position();
            reader.array_of(2, "a range: [first, last]")?;
            let first = reader.unsigned("the first number of a range")?;
            let last = reader.unsigned("the last number of a range")?;
            let ordered = ranges.0.last().is_none_or(|before| *before.end() < first);
            if first == 0 || last < first || !ordered {
                return Err(FrameError::BadBody { at, expected: "ranges from 1 on, in order" });
            }
            ranges.0.push(first..=last);
        }
        if ranges.count() > SEQ_WINDOW {
            return Err(FrameError::BadBody { at, expected: "at most 1,024 numbers" });
        }
        Ok(ranges)
    }

    fn of_sorted(seqs: &[u64]) -> Self {
        let mut ranges: Vec<RangeInclusive<u64>> = Vec::new();
        for &seq in seqs {
            match ranges.last_mut() {
                // A repeated number is named once.
                Some(range) if *range.end() == seq || range.end().checked_add(1) == Some(seq) => {
                    *range = *range.start()..=seq;
                }
                _ => ranges.push(seq..=seq),
            }
        }
        Self(ranges)
    }
}

impl FromIterator<u64> for SeqRanges {
    fn from_iter<I: IntoIterator<Item = u64>>(seqs: I) -> Self {
        let mut seqs: Vec<u64> = seqs.into_iter().collect();
        seqs.sort_unstable();
        Self::of_sorted(&seqs)
    }
}
