use std::hash::{BuildHasher, RandomState};

/// The dice of one sender, for waits that only have to be spread out and never have to be secret.
#[derive(Debug)]
pub(super) struct Chance {
    state: u64,
}

// === impl Chance ===

impl Chance {
    /// The stream of this seed and number; of the process when there is no seed.
    pub(super) fn new(seed: Option<u64>, number: u64) -> Self {
        let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(0u8));
        Self { state: seed ^ number.wrapping_mul(0xD1B5_4A32_D192_ED03) }
    }

    /// The next number in 0 … 1 (SplitMix64).
    pub(super) fn next(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        // The upper 53 bits are what an f64 holds exactly.
        (z >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_stream_and_numbers_give_others() {
        let stream = |seed, number| {
            let mut chance = Chance::new(Some(seed), number);
            std::array::from_fn::<_, 8, _>(|_| chance.next())
        };
        assert_eq!(stream(7, 1), stream(7, 1));
        assert_ne!(stream(7, 1), stream(7, 2));
        assert_ne!(stream(7, 1), stream(8, 1));
        assert!(stream(7, 1).iter().all(|chance| (0.0..1.0).contains(chance)));
    }
}
