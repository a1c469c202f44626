//! Dice for waits, which only have to be spread out and never have to be secret.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// A stream of chances that differs from every other, in this process and in the next.
#[derive(Debug)]
pub(crate) struct Chance {
    state: AtomicU64,
}

// === impl Chance ===

impl Chance {
    pub(crate) fn from_process() -> Self {
        Self { state: AtomicU64::new(RandomState::new().hash_one(0_u8)) }
    }

    /// The next chance in 0 … 1 (SplitMix64).
    pub(crate) fn next(&self) -> f64 {
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut z = self.state.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        // As many bits as a double holds exactly.
        (z >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_fill_the_range_and_streams_differ() {
        let chance = Chance::from_process();
        let mut tenths = [0_u32; 10];
        for _ in 0..10_000 {
            let next = chance.next();
            assert!((0.0..1.0).contains(&next), "{next}");
            tenths[(next * 10.0) as usize] += 1;
        }
        assert!(tenths.iter().all(|count| (800..1_200).contains(count)), "{tenths:?}");
        assert_ne!(Chance::from_process().next(), Chance::from_process().next());
    }
}
