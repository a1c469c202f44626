//! A reproducible random number generator.
//!
//! Not a crate: a crate may change the stream of a seed from one version to the next, and with it every report
//! that was ever stored.

/// A SplitMix64 generator (Steele, Lea and Flood, 2014): the same seed gives the same stream on every platform.
/// For spreading and for simulation, never for secrets.
///
/// ```
/// use tidegate_core::rng::Rng;
///
/// let mut rng = Rng::new(1_234_567);
/// assert_eq!(rng.next_u64(), 6_457_827_717_110_365_317);
/// assert!((0.0..1.0).contains(&rng.fraction()));
/// ```
#[derive(Clone, Debug)]
pub struct Rng(u64);

// === impl Rng ===

impl Rng {
    /// The increment between two states, an odd constant near 2^64 / φ.
    pub const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

    /// Returns the generator of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns an independent generator, so that the draws of one part do not shift those of another.
    pub const fn fork(&mut self) -> Self {
        Self(self.next_u64())
    }

    /// Returns the next 64 random bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(Self::STEP);
        Self::mix(self.0)
    }

    /// Returns a uniform number in [0, 1).
    pub const fn fraction(&mut self) -> f64 {
        Self::to_fraction(self.next_u64())
    }

    /// Returns a uniform number in (0, 1]: never 0, whose logarithm is infinite.
    pub const fn uniform(&mut self) -> f64 {
        ((self.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Maps a state to its output. With [`STEP`](Self::STEP) it is all that a shared, atomic generator needs.
    #[must_use]
    pub const fn mix(state: u64) -> u64 {
        let z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Maps 64 random bits to [0, 1), by the upper 53: the precision of an `f64`.
    #[must_use]
    pub const fn to_fraction(bits: u64) -> f64 {
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_published_one() {
        // The reference implementation's first numbers for this seed.
        let mut rng = Rng::new(1_234_567);
        assert_eq!(
            [rng.next_u64(), rng.next_u64(), rng.next_u64()],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }
}
