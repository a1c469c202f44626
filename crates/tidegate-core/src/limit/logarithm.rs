//! Logarithm and exponential by operations that IEEE 754 defines to the last bit: those of the platform differ
//! in the last digit between platforms, and with them decisions.

/// Returns the natural logarithm of a positive, normal number, to eight digits.
pub(super) fn ln(x: f64) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    const ONE: u64 = 1023 << 52;
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i32 - 1023;
    let mut mantissa = f64::from_bits((bits & MANTISSA) | ONE);
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    // ln m = 2·(s + s³/3 + s⁵/5 + s⁷/7 + …), s = (m − 1)/(m + 1). With |s| ≤ 0.172 the next term is below 3e-8.
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let q = s * s;
    let series = 1.0 + q * (1.0 / 3.0 + q * (0.2 + q / 7.0));
    2.0 * s * series + f64::from(exponent) * std::f64::consts::LN_2
}

/// Returns e to the power of a number from −30 … 30, to six digits.
pub(super) fn exp(x: f64) -> f64 {
    // (1 + y + y²/2 + y³/6)^1024 with y = x/1024: the error of a factor is y⁴/24, below 4e-8.
    let y = x.clamp(-30.0, 30.0) / 1024.0;
    let factor = 1.0 + y * (1.0 + y * (0.5 + y / 6.0));
    (0..10).fold(factor, |power, _| power * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_each_others_inverse() {
        for i in 1..2_000 {
            let x = f64::from(i) / 100.0 - 10.0;
            assert!((ln(exp(x)) - x).abs() < 1e-5, "{x}");
        }
        assert_eq!(ln(1.0), 0.0);
        assert!((ln(std::f64::consts::E) - 1.0).abs() < 1e-7);
        assert!((exp(1.0) - std::f64::consts::E).abs() < 1e-5);
    }
}
