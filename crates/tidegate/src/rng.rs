//! Randomness that threads share, for spreading choices and waits. Never for secrets.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// A random number generator behind a shared reference. Each draw is one atomic addition.
///
/// ```
/// use tidegate::rng::Rng;
///
/// let rng = Rng::from_seed(7);
/// assert_eq!(rng.next_u64(), Rng::from_seed(7).next_u64());
/// assert!((0.0..1.0).contains(&Rng::from_process().fraction()));
/// ```
#[derive(Debug)]
pub struct Rng {
    state: AtomicU64,
}

// === impl Rng ===

impl Rng {
    /// Returns a generator that differs from every other, in this process and in the next.
    #[must_use]
    pub fn from_process() -> Self {
        Self::from_seed(RandomState::new().hash_one(0_u8))
    }

    /// Returns the generator of a seed; the same seed gives the same stream.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        Self { state: AtomicU64::new(seed) }
    }

    /// Returns stream `number` of a seed, or of this process without one.
    #[must_use]
    pub fn stream(seed: Option<u64>, number: u64) -> Self {
        let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(0_u8));
        Self::from_seed(seed ^ number.wrapping_mul(0xD1B5_4A32_D192_ED03))
    }

    /// Returns the next 64 random bits.
    pub fn next_u64(&self) -> u64 {
        const STEP: u64 = tidegate_core::rng::Rng::STEP;
        let state = self.state.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        tidegate_core::rng::Rng::mix(state)
    }

    /// Returns a uniform number in [0, 1).
    pub fn fraction(&self) -> f64 {
        tidegate_core::rng::Rng::to_fraction(self.next_u64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_fill_the_range_and_streams_differ() {
        let rng = Rng::from_process();
        let mut tenths = [0_u32; 10];
        for _ in 0..10_000 {
            let next = rng.fraction();
            assert!((0.0..1.0).contains(&next), "{next}");
            tenths[(next * 10.0) as usize] += 1;
        }
        assert!(tenths.iter().all(|count| (800..1_200).contains(count)), "{tenths:?}");
        assert_ne!(Rng::from_process().next_u64(), Rng::from_process().next_u64());
    }

    #[test]
    fn a_seed_gives_the_same_stream_and_numbers_give_others() {
        let stream = |seed, number| {
            let rng = Rng::stream(Some(seed), number);
            std::array::from_fn::<_, 8, _>(|_| rng.next_u64())
        };
        assert_eq!(stream(7, 1), stream(7, 1));
        assert_ne!(stream(7, 1), stream(7, 2));
        assert_ne!(stream(7, 1), stream(8, 1));
    }
}
