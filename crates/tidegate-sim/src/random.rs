//! Chance, reproducible for ever.
//!
//! Not a crate: those may change what a seed gives from one version to the next, and with it every report
//! that was ever kept. Not the logarithm of the platform either: it differs in the last digit between them.

/// A stream of numbers that look random: SplitMix64, published by Steele, Lea and Flood in 2014.
#[derive(Clone, Debug)]
pub(crate) struct SplitMix64(u64);

// === impl SplitMix64 ===

impl SplitMix64 {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A stream of its own, so that what one part of a simulation draws does not shift another's.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.next())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in (0, 1]: never 0, whose logarithm is infinite. 53 bits, the precision of the type.
    pub(crate) fn uniform(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Exponentially distributed with this mean.
    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * ln(self.uniform())
    }
}

/// The natural logarithm of a positive, normal number, by operations that IEEE 754 defines to the last bit.
pub(crate) fn ln(x: f64) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    const ONE: u64 = 1023 << 52;
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i32 - 1023;
    let mut mantissa = f64::from_bits((bits & MANTISSA) | ONE);
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    // ln m = 2·(s + s³/3 + s⁵/5 + …), s = (m − 1)/(m + 1). With |s| ≤ 0.172 the twelfth term is below 1e-17.
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let series = (0..12).rev().fold(0.0, |sum, k| sum * s * s + 1.0 / f64::from(2 * k + 1));
    2.0 * s * series + f64::from(exponent) * std::f64::consts::LN_2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_published_one() {
        // The reference implementation's first numbers for this seed.
        let mut stream = SplitMix64::new(1_234_567);
        assert_eq!(
            [stream.next(), stream.next(), stream.next()],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    #[allow(clippy::disallowed_methods)] // To compare with.
    fn the_logarithm_is_one() {
        let mut stream = SplitMix64::new(7);
        for _ in 0..100_000 {
            let x = stream.uniform();
            assert!((ln(x) - x.ln()).abs() <= 1e-15 * x.ln().abs().max(1.0), "{x}");
        }
        assert_eq!(ln(1.0), 0.0);
    }

    #[test]
    fn exponential_times_have_their_mean_and_their_spread() {
        let mut stream = SplitMix64::new(3);
        let n = 1_000_000;
        let (sum, squares) = (0..n).fold((0.0, 0.0), |(sum, squares), _| {
            let x = stream.exponential(2.0);
            (sum + x, squares + x * x)
        });
        let mean = sum / f64::from(n);
        let deviation = (squares / f64::from(n) - mean * mean).sqrt();
        // Five standard errors of the mean: 5 · 2 / √n.
        assert!((mean - 2.0).abs() < 0.01, "{mean}");
        assert!((deviation - 2.0).abs() < 0.02, "{deviation}");
    }
}
