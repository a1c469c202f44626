//! Reproducible draws for simulations.
//!
//! The logarithm is computed here: that of the platform differs in the last digit between platforms.

use tidegate_core::rng::Rng;

/// Draws from distributions other than the uniform one.
pub(crate) trait Draw {
    /// Draws an exponentially distributed number with this mean.
    fn exponential(&mut self, mean: f64) -> f64;
}

impl Draw for Rng {
    fn exponential(&mut self, mean: f64) -> f64 {
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

/// Returns e to the power of a number, by operations that IEEE 754 defines to the last bit.
pub(crate) fn exp(x: f64) -> f64 {
    // (1 + y + y²/2 + y³/6 + y⁴/24)^1024 with y = x/1024.
    let y = x / 1024.0;
    let factor = 1.0 + y * (1.0 + y / 2.0 * (1.0 + y / 3.0 * (1.0 + y / 4.0)));
    (0..10).fold(factor, |power, _| power * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods)] // To compare with.
    fn the_logarithm_is_one() {
        let mut stream = Rng::new(7);
        for _ in 0..100_000 {
            let x = stream.uniform();
            assert!((ln(x) - x.ln()).abs() <= 1e-15 * x.ln().abs().max(1.0), "{x}");
        }
        assert_eq!(ln(1.0), 0.0);
    }

    #[test]
    fn the_exponential_is_the_inverse_of_the_logarithm() {
        for i in -100..100 {
            let x = f64::from(i) / 10.0;
            assert!((ln(exp(x)) - x).abs() < 1e-9, "{x}");
        }
    }

    #[test]
    fn exponential_times_have_their_mean_and_their_spread() {
        let mut stream = Rng::new(3);
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
