//! The gateway's dice, for choices that only have to be spread out and never have to be secret.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// A stream of random numbers, for one thread.
#[derive(Debug)]
pub struct Chance {
    state: AtomicU64,
}

// === impl Chance ===

impl Chance {
    /// A stream that differs from every other, in this process and in the next.
    #[must_use]
    pub fn from_process() -> Self {
        Self { state: AtomicU64::new(RandomState::new().hash_one(0u8)) }
    }

    /// The stream that belongs to a seed, the same every time.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        Self { state: AtomicU64::new(seed) }
    }

    /// The next number (SplitMix64).
    pub fn next(&self) -> u64 {
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut z = self.state.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}
