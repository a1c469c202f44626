//! The fill of a KV cache, from the numbers that a server reports.

use tidegate::routing::LoadReport;

/// Blocks of a cache of which only a ratio is told: the ratio becomes so many of a thousand.
pub const PER_MILLE: u64 = 1_000;

/// A cache that is a little more than full is full. What is far beyond that has another unit, which is not
/// guessed: 0.9 could be 90 % or 0.9 %.
const RATIO_MAX: f64 = 2.0;

/// The reported numbers of one cache, in any form. A missing one is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Kv {
    pub ratio: Option<f64>,
    pub used: Option<u64>,
    pub total: Option<u64>,
    /// The same in tokens, for a server that counts those.
    pub used_tokens: Option<u64>,
    pub total_tokens: Option<u64>,
    /// Tokens in a block.
    pub block_tokens: Option<u64>,
}

// === impl Kv ===

impl Kv {
    /// Writes it into a report as blocks: per mille when no total is told.
    ///
    /// When both a ratio and a number of blocks are told, the fuller of the two speaks: a server with several
    /// pools may count the blocks of one and tell the ratio of the fullest.
    pub fn fill(self, report: &mut LoadReport) {
        self.in_blocks().fill_blocks(report);
    }

    /// Converts tokens to blocks. Where the size of a block is not told, a token is a block.
    fn in_blocks(self) -> Self {
        if self.used_tokens.is_none() && self.total_tokens.is_none() {
            return self;
        }
        let size = self.block_tokens.filter(|tokens| *tokens > 0).unwrap_or(1);
        Self {
            used: self.used.or(self.used_tokens.map(|tokens| tokens.div_ceil(size))),
            total: self.total.or(self.total_tokens.map(|tokens| tokens / size)),
            block_tokens: Some(size),
            ..self
        }
    }

    fn fill_blocks(self, report: &mut LoadReport) {
        // A cache of no blocks that is in use is a total that nobody set.
        let total = self.total.filter(|total| *total > 0 || !self.is_in_use());
        let total = total.or(self.ratio.map(|_| PER_MILLE));
        let by_ratio = match (self.ratio, total) {
            (Some(ratio), Some(total)) => Some((ratio.min(1.0) * total as f64).round() as u64),
            _ => None,
        };
        // Blocks are never set against a total that is not theirs.
        let used = self.used.filter(|_| self.total == total);
        report.active_decode_blocks = by_ratio.max(used);
        report.kv_total_blocks = total;
        // A share of a thousand is no block of this size.
        let is_of_blocks = total.is_some() && self.total == total;
        report.tokens_per_block = self.block_tokens.filter(|tokens| is_of_blocks && *tokens > 0);
    }

    fn is_in_use(self) -> bool {
        self.ratio.is_some_and(|ratio| ratio > 0.0) || self.used.is_some_and(|used| used > 0)
    }
}

/// A value as a ratio, if it can be one.
pub(super) fn ratio(value: f64) -> Option<f64> {
    (0.0..=RATIO_MAX).contains(&value).then_some(value)
}

/// A value as a count, if it can be one: NaN, infinity and what is negative tell nothing.
pub(super) fn count(value: f64) -> Option<u64> {
    // 2⁵³, above which a double does not count in ones.
    (0.0..=9_007_199_254_740_992.0).contains(&value).then(|| value.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(
        ratio: Option<f64>,
        used: Option<u64>,
        total: Option<u64>,
    ) -> (Option<u64>, Option<u64>) {
        let mut report = LoadReport::default();
        Kv { ratio, used, total, ..Kv::default() }.fill(&mut report);
        (report.active_decode_blocks, report.kv_total_blocks)
    }

    #[test]
    fn tokens_become_blocks_of_the_size_that_is_told() {
        let kv = Kv { used_tokens: Some(130), total_tokens: Some(6_400), ..Kv::default() };
        let blocks = |kv: Kv| {
            let mut report = LoadReport::default();
            kv.fill(&mut report);
            [report.active_decode_blocks, report.kv_total_blocks, report.tokens_per_block]
        };
        assert_eq!(blocks(kv), [Some(130), Some(6_400), Some(1)]);
        assert_eq!(blocks(Kv { block_tokens: Some(64), ..kv }), [Some(3), Some(100), Some(64)]);
        assert_eq!(blocks(Kv { block_tokens: Some(0), ..kv }), [Some(130), Some(6_400), Some(1)]);
        let share = Kv { ratio: Some(0.5), block_tokens: Some(16), ..Kv::default() };
        assert_eq!(blocks(share), [Some(500), Some(1_000), None], "no blocks of the server");
    }

    #[test]
    fn blocks_come_from_whatever_is_told() {
        assert_eq!(blocks(None, None, None), (None, None));
        assert_eq!(blocks(Some(0.873), None, None), (Some(873), Some(1_000)));
        assert_eq!(blocks(Some(0.5), None, Some(2_000)), (Some(1_000), Some(2_000)));
        assert_eq!(blocks(None, Some(7), Some(9)), (Some(7), Some(9)));
        assert_eq!(blocks(None, None, Some(9)), (None, Some(9)));
    }

    #[test]
    fn the_fuller_of_two_figures_speaks_and_more_than_full_is_full() {
        assert_eq!(blocks(Some(0.9), Some(10), Some(100)), (Some(90), Some(100)));
        assert_eq!(blocks(Some(0.1), Some(20), Some(100)), (Some(20), Some(100)));
        assert_eq!(blocks(Some(1.04), None, Some(100)), (Some(100), Some(100)));
    }

    #[test]
    fn used_blocks_without_a_total_are_not_set_against_another_total() {
        assert_eq!(blocks(Some(0.2), Some(5_000), None), (Some(200), Some(1_000)));
        assert_eq!(blocks(None, Some(5_000), None), (Some(5_000), None));
    }

    #[test]
    fn no_blocks_is_not_ready_unless_they_are_in_use() {
        assert_eq!(blocks(Some(0.0), None, Some(0)), (Some(0), Some(0)));
        assert_eq!(blocks(None, None, Some(0)), (None, Some(0)));
        assert_eq!(blocks(Some(0.3), None, Some(0)), (Some(300), Some(1_000)));
    }

    #[test]
    fn what_is_no_number_of_things_tells_nothing() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, -0.001, 1e300] {
            assert_eq!((ratio(value), count(value)), (None, None), "{value}");
        }
        assert_eq!((ratio(-0.0), count(-0.0)), (Some(0.0), Some(0)));
        assert_eq!((ratio(87.0), count(87.4)), (None, Some(87)));
    }
}
