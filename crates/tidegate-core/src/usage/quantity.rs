use rust_decimal::Decimal;
use std::fmt;

/// Largest mantissa of a [`Decimal`]: 96 bits.
const MANTISSA_MAX: u128 = (1 << 96) - 1;

/// Maximum number of decimal places of a [`Decimal`].
const SCALE_MAX: i32 = 28;

/// Number of digits that always fit in a `u128` and exceed a [`Decimal`]: further digits only round.
const DIGITS_MAX: u32 = 37;

/// Exponent beyond which any number is zero or out of range.
const EXPONENT_MAX: i32 = 1_000_000;

/// Error for text that is no quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantityError {
    /// Not a decimal number. NaN and infinity are not either.
    NotANumber,
    /// Above 79,228,162,514,264,337,593,543,950,335.
    OutOfRange,
}

/// Number without sign and point: `mantissa` × 10^`exponent`, and slightly more if `inexact`.
struct Digits {
    mantissa: u128,
    exponent: i32,
    /// A nonzero digit was cut off.
    inexact: bool,
}

/// Parses a decimal number exactly, never through a float.
///
/// A sign, a point and an exponent (`-1.5e3`) are allowed. Digits beyond 28 decimal places, or beyond the 96 bits
/// of a quantity, are rounded half to even.
///
/// ```
/// use tidegate_core::usage::parse_quantity;
///
/// assert_eq!(parse_quantity(b"0.10").unwrap().to_string(), "0.10");
/// assert_eq!(parse_quantity(b"-1.5e3").unwrap().to_string(), "-1500");
/// assert!(parse_quantity(b"NaN").is_err());
/// ```
///
/// # Errors
///
/// If the text is no number, or the number is out of range.
pub fn parse_quantity(text: &[u8]) -> Result<Decimal, QuantityError> {
    let (negative, unsigned) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let digits = match Digits::read_short(unsigned) {
        Some(digits) => digits,
        None => Digits::read(unsigned)?,
    };
    digits.to_decimal(negative)
}

/// Computes `mantissa` × 10^`exponent`.
///
/// # Errors
///
/// If the result is out of range.
pub(crate) fn quantity_of_parts(mantissa: i128, exponent: i64) -> Result<Decimal, QuantityError> {
    let exponent = exponent.clamp(-i64::from(EXPONENT_MAX), i64::from(EXPONENT_MAX)) as i32;
    let digits = Digits { mantissa: mantissa.unsigned_abs(), exponent, inexact: false };
    digits.to_decimal(mantissa < 0)
}

// === impl Digits ===

impl Digits {
    /// Parses the usual number: at most 18 bytes of digits with at most one point. `None` leaves it to `read`.
    #[inline]
    fn read_short(text: &[u8]) -> Option<Self> {
        if text.is_empty() || text.len() > 18 {
            return None;
        }
        let (mut mantissa, mut point) = (0_u64, None);
        for (index, &byte) in text.iter().enumerate() {
            match byte {
                b'0'..=b'9' => mantissa = mantissa * 10 + u64::from(byte - b'0'),
                b'.' if point.is_none() && text.len() > 1 => point = Some(index),
                _ => return None,
            }
        }
        let exponent = point.map_or(0, |index| index as i32 + 1 - text.len() as i32);
        Some(Self { mantissa: u128::from(mantissa), exponent, inexact: false })
    }

    fn read(text: &[u8]) -> Result<Self, QuantityError> {
        let mut digits = Self { mantissa: 0, exponent: 0, inexact: false };
        let (mut digit_count, mut seen, mut point) = (0, false, false);
        let mut bytes = text.iter();
        while let Some(&byte) = bytes.next() {
            match byte {
                b'0'..=b'9' => {
                    seen = true;
                    digits.push(byte - b'0', &mut digit_count, point);
                }
                b'.' if !point => point = true,
                b'e' | b'E' if seen => {
                    let exponent = read_exponent(bytes.as_slice())?;
                    digits.exponent = digits.exponent.saturating_add(exponent);
                    return Ok(digits);
                }
                _ => return Err(QuantityError::NotANumber),
            }
        }
        if seen { Ok(digits) } else { Err(QuantityError::NotANumber) }
    }

    fn push(&mut self, digit: u8, digit_count: &mut u32, point: bool) {
        if *digit_count < DIGITS_MAX {
            self.mantissa = self.mantissa * 10 + u128::from(digit);
            *digit_count += u32::from(self.mantissa != 0);
            self.exponent = self.exponent.saturating_sub(i32::from(point));
        } else {
            self.inexact |= digit != 0;
            self.exponent = self.exponent.saturating_add(i32::from(!point));
        }
    }

    #[inline]
    fn to_decimal(&self, negative: bool) -> Result<Decimal, QuantityError> {
        let (mantissa, scale) =
            if self.mantissa <= MANTISSA_MAX && (-SCALE_MAX..=0).contains(&self.exponent) {
                (self.mantissa, self.exponent.unsigned_abs())
            } else if self.exponent > 0 {
                (self.scaled_up()?, 0)
            } else {
                self.rounded()?
            };
        let (low, mid, high) = (mantissa as u32, (mantissa >> 32) as u32, (mantissa >> 64) as u32);
        Ok(Decimal::from_parts(low, mid, high, negative && mantissa != 0, scale))
    }

    fn scaled_up(&self) -> Result<u128, QuantityError> {
        if self.mantissa == 0 {
            return Ok(0);
        }
        10_u128
            .checked_pow(self.exponent.unsigned_abs())
            .and_then(|power| self.mantissa.checked_mul(power))
            .filter(|mantissa| *mantissa <= MANTISSA_MAX)
            .ok_or(QuantityError::OutOfRange)
    }

    /// Mantissa with as many digits as fit, rounded half to even, and its number of decimal places.
    fn rounded(&self) -> Result<(u128, u32), QuantityError> {
        let digits_behind = self.exponent.unsigned_abs();
        let mut cut = digits_behind.saturating_sub(SCALE_MAX.unsigned_abs());
        loop {
            if cut > digits_behind {
                return Err(QuantityError::OutOfRange);
            }
            let mantissa = self.cut(cut);
            if mantissa <= MANTISSA_MAX {
                return Ok((mantissa, digits_behind - cut));
            }
            cut += 1;
        }
    }

    /// Mantissa without its last `count` digits, rounded half to even.
    fn cut(&self, count: u32) -> u128 {
        let Some(power) = 10_u128.checked_pow(count) else { return 0 };
        let (whole, rest) = (self.mantissa / power, self.mantissa % power);
        // Every power of ten is even except the first, which cuts nothing and leaves no rest.
        let half = power / 2;
        let up = match rest.cmp(&half) {
            _ if count == 0 => false,
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Equal => self.inexact || whole % 2 == 1,
            std::cmp::Ordering::Greater => true,
        };
        whole + u128::from(up)
    }
}

fn read_exponent(text: &[u8]) -> Result<i32, QuantityError> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(QuantityError::NotANumber);
    }
    let exponent = digits
        .iter()
        .fold(0_i32, |exponent, digit| (exponent * 10 + i32::from(digit - b'0')).min(EXPONENT_MAX));
    Ok(if negative { -exponent } else { exponent })
}

// === impl QuantityError ===

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotANumber => f.write_str("not a decimal number, such as -12.5 or 3e6"),
            Self::OutOfRange => f.write_str("too large for a quantity: at most about 7.9e28"),
        }
    }
}

impl std::error::Error for QuantityError {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(text: &str) -> Result<String, QuantityError> {
        parse_quantity(text.as_bytes()).map(|quantity| quantity.to_string())
    }

    #[test]
    fn numbers_are_taken_as_written() {
        let table = [
            ("0", "0"),
            ("-0", "0"),
            ("-0.00", "0.00"),
            ("+7", "7"),
            ("007", "7"),
            ("1.", "1"),
            (".5", "0.5"),
            ("0.10", "0.10"),
            ("-12.5", "-12.5"),
            ("1.5e3", "1500"),
            ("1.5E+3", "1500"),
            ("1500e-3", "1.500"),
            ("0e999999999999", "0"),
            ("1e-999999999999", "0.0000000000000000000000000000"),
            ("1e28", "10000000000000000000000000000"),
            ("79228162514264337593543950335", "79228162514264337593543950335"),
            ("-79228162514264337593543950335", "-79228162514264337593543950335"),
            ("0.0000000000000000000000000001", "0.0000000000000000000000000001"),
            ("9223372036854775807", "9223372036854775807"),
            ("18446744073709551615", "18446744073709551615"),
        ];
        for (text, expected) in table {
            assert_eq!(shown(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_has_no_room_is_rounded_half_to_even() {
        let zeros = "0".repeat(27);
        let table = [
            (format!("0.{zeros}05"), format!("0.{zeros}0")),
            (format!("0.{zeros}15"), format!("0.{zeros}2")),
            (format!("0.{zeros}25"), format!("0.{zeros}2")),
            (format!("0.{zeros}250000000000000000000000000001"), format!("0.{zeros}3")),
            (format!("0.{zeros}24999999999999999999999999999999"), format!("0.{zeros}2")),
            ("12345678901234567890123456789.5".into(), "12345678901234567890123456790".into()),
            ("79228162514264337593543950335.4".into(), "79228162514264337593543950335".into()),
            ("7922816251426433759354395033.55".into(), "7922816251426433759354395034".into()),
        ];
        for (text, expected) in table {
            assert_eq!(shown(&text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_or_too_great_is_refused() {
        for text in
            ["", "-", "+", ".", "-.", "e5", ".e5", "1e", "1e+", "1e5.0", "1..2", "1,5", "0x10"]
        {
            assert_eq!(shown(text), Err(QuantityError::NotANumber), "{text}");
        }
        for text in ["NaN", "nan", "inf", "-Inf", "Infinity", "1_000", " 1", "1 ", "--1", "１"] {
            assert_eq!(shown(text), Err(QuantityError::NotANumber), "{text}");
        }
        for text in [
            "79228162514264337593543950336",
            "79228162514264337593543950335.5",
            "1e29",
            "1e999999999999999999999",
            "123456789012345678901234567890123456789012345678901234567890",
        ] {
            assert_eq!(shown(text), Err(QuantityError::OutOfRange), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_decimal_survives_its_text(mantissa in any::<i128>(), scale in 0_u32..=28) {
            let quantity = Decimal::from_i128_with_scale(mantissa >> 32, scale);
            let read = parse_quantity(quantity.to_string().as_bytes()).unwrap();
            prop_assert_eq!((read, read.scale()), (quantity, quantity.scale()));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(text in "[-+0-9.eE]{0,80}") {
            let _ = parse_quantity(text.as_bytes());
        }

        /// Against the other implementation at hand, where that one claims to be exact.
        #[test]
        fn it_agrees_with_the_decimal_crate(text in "-?[0-9]{1,20}(\\.[0-9]{1,8})?") {
            let theirs = Decimal::from_str_exact(&text).ok();
            prop_assert_eq!(parse_quantity(text.as_bytes()).ok(), theirs);
        }
    }
}
