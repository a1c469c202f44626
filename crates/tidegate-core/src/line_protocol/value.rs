use super::token::{Fault, Scanner};
use super::{LineFault, Precision};
use crate::usage::{QuantityError, parse_quantity};
use rust_decimal::Decimal;

/// Reads the value of a field: its quantity, or `None` for a string or a boolean.
#[inline]
pub(super) fn read_value(scanner: &mut Scanner<'_>) -> Result<Option<Decimal>, Fault> {
    let at = scanner.at;
    if scanner.peek() == Some(b'"') {
        return scanner.string().map(|()| None);
    }
    let value = scanner.plain();
    match value {
        [] => Err((LineFault::MissingValue, at)),
        b"t" | b"T" | b"true" | b"True" | b"TRUE" => Ok(None),
        b"f" | b"F" | b"false" | b"False" | b"FALSE" => Ok(None),
        [number @ .., b'i'] => integer(number, true, at).map(Some),
        [number @ .., b'u'] => integer(number, false, at).map(Some),
        number => quantity(number, at).map(Some),
    }
}

/// Reads a timestamp.
pub(super) fn read_time(scanner: &mut Scanner<'_>, precision: Precision) -> Result<i64, Fault> {
    let at = scanner.at;
    let text = scanner.plain();
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let count = count(digits).ok_or((LineFault::BadTime, at))?;
    let sign = if digits.len() < text.len() { -1 } else { 1 };
    count
        .checked_mul(sign * i128::from(precision.unit_ns()))
        .and_then(|time_ns| i64::try_from(time_ns).ok())
        .ok_or((LineFault::TimeOutOfRange, at))
}

/// Value of digits; saturated if there are more than any time has.
#[inline]
fn count(digits: &[u8]) -> Option<i128> {
    let (mut count, mut all_digits) = (0_u64, !digits.is_empty());
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        all_digits &= digit <= 9;
        count = count.wrapping_mul(10).wrapping_add(u64::from(digit));
    }
    // Nineteen digits always fit in 64 bits.
    let fits = digits.len() <= 19 || digits[..digits.len() - 19].iter().all(|digit| *digit == b'0');
    all_digits.then_some(if fits { i128::from(count) } else { i128::MAX })
}

fn integer(number: &[u8], may_be_negative: bool, at: usize) -> Result<Decimal, Fault> {
    let digits = match number {
        [b'-', digits @ ..] if may_be_negative => digits,
        _ => number,
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err((LineFault::BadNumber, at));
    }
    quantity(number, at)
}

#[inline]
fn quantity(number: &[u8], at: usize) -> Result<Decimal, Fault> {
    parse_quantity(number).map_err(|error| match error {
        QuantityError::NotANumber => (LineFault::BadNumber, at),
        QuantityError::OutOfRange => (LineFault::NumberOutOfRange, at),
    })
}
