use super::token::{Fault, Scanner};
use super::{LineFault, Precision};
use crate::usage::{QuantityError, parse_quantity};
use rust_decimal::Decimal;

/// Reads the value of a field: its quantity, or `None` if it is a string or a boolean.
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
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err((LineFault::BadTime, at));
    }
    count(digits)
        .and_then(|count| i128::from(count).checked_mul(precision.unit_ns().into()))
        .map(|time| if digits.len() < text.len() { -time } else { time })
        .and_then(|time_ns| i64::try_from(time_ns).ok())
        .ok_or((LineFault::TimeOutOfRange, at))
}

/// Nineteen digits fit in 64 bits, and so does any time in nanoseconds.
#[inline]
fn count(digits: &[u8]) -> Option<u64> {
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    let digits = &digits[zeros..];
    (digits.len() <= 19)
        .then(|| digits.iter().fold(0, |count, digit| count * 10 + u64::from(digit - b'0')))
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
