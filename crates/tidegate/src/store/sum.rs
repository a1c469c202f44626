use rust_decimal::Decimal;
use std::ops::AddAssign;

/// Places after the point of a sum: those of a decimal number.
const PLACES: u32 = 28;

/// 2^96: what the digits of a decimal number stay below.
const DIGITS_END: u128 = 1 << 96;

/// An exact sum of decimal numbers, whatever their order.
///
/// A decimal number has 28 digits, so adding two of them may round, and then the order of the additions shows in
/// the sum. This holds 28 places after the point and 48 before it: 10^19 of the largest numbers fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    hi: i128,
    lo: u128,
}

/// The size of a sum without its sign.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Magnitude {
    hi: u128,
    lo: u128,
}

// === impl Sum ===

impl Sum {
    /// As a decimal number: exact if it fits, else rounded to the nearest, or the largest there is.
    pub(crate) fn to_decimal(self) -> Decimal {
        let (size, negative) = self.split();
        let number = size.to_decimal();
        if negative { -number } else { number }
    }

    /// True if it is beyond what a decimal number holds.
    pub(crate) fn overflows(self) -> bool {
        // 2^96 with the places after the point. Rounding never exceeds the largest number.
        let end = Magnitude::product(DIGITS_END, 10_u128.pow(PLACES));
        let (size, _) = self.split();
        (size.hi, size.lo) >= (end.hi, end.lo)
    }

    /// Its bytes, as few as keep the sign, after their number.
    pub(crate) fn encode(self, into: &mut Vec<u8>) {
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(&self.hi.to_be_bytes());
        bytes[16..].copy_from_slice(&self.lo.to_be_bytes());
        let fill = if self.hi < 0 { 0xff } else { 0 };
        let mut start = bytes.iter().take_while(|byte| **byte == fill).count();
        // One byte of the fill stays where the next would say the other sign.
        if start > 0 && bytes.get(start).is_none_or(|byte| (byte ^ fill) & 0x80 != 0) {
            start -= 1;
        }
        into.push((bytes.len() - start) as u8);
        into.extend_from_slice(&bytes[start..]);
    }

    /// Reads the output of [`encode`](Self::encode); returns the rest of the bytes, too.
    pub(crate) fn decode(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (length, rest) = bytes.split_first()?;
        let (bytes, rest) = rest.split_at_checked(usize::from(*length))?;
        let fill = if *bytes.first()? & 0x80 != 0 { 0xff } else { 0 };
        let mut all = [fill; 32];
        all.get_mut(32_usize.checked_sub(bytes.len())?..)?.copy_from_slice(bytes);
        let (hi, lo) = (all.first_chunk::<16>()?, all.last_chunk::<16>()?);
        Some((Self { hi: i128::from_be_bytes(*hi), lo: u128::from_be_bytes(*lo) }, rest))
    }

    /// The number in a text such as `-12.5`, which has at most 28 places after the point.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, places) = text.split_once('.').unwrap_or((text, ""));
        let zeros = (PLACES as usize).checked_sub(places.len())?;
        let mut size = Magnitude { hi: 0, lo: 0 };
        for letter in whole.bytes().chain(places.bytes()).chain(std::iter::repeat_n(b'0', zeros)) {
            let digit = letter.checked_sub(b'0').filter(|digit| *digit <= 9)?;
            size = size.times_ten_plus(digit)?;
        }
        Some(size.signed(negative))
    }

    /// Its digits to the base of 10,000, the last first, and whether it is negative. Seven of them stand after
    /// the point.
    pub(crate) fn base_10_000(self) -> (Vec<i16>, bool) {
        let (mut size, negative) = self.split();
        let mut digits = Vec::with_capacity(16);
        while size != (Magnitude { hi: 0, lo: 0 }) {
            let (rest, digit) = size.divide(10_000);
            digits.push(digit as i16);
            size = rest;
        }
        (digits, negative)
    }

    fn split(self) -> (Magnitude, bool) {
        let negative = self.hi < 0;
        let positive = if negative { self.negated() } else { self };
        (Magnitude { hi: positive.hi as u128, lo: positive.lo }, negative)
    }

    fn negated(self) -> Self {
        let (lo, carry) = (!self.lo).overflowing_add(1);
        Self { hi: (!self.hi).wrapping_add(i128::from(carry)), lo }
    }
}

impl From<Decimal> for Sum {
    fn from(number: Decimal) -> Self {
        let digits = number.mantissa();
        let size = Magnitude::product(digits.unsigned_abs(), 10_u128.pow(PLACES - number.scale()));
        size.signed(digits < 0)
    }
}

impl AddAssign for Sum {
    fn add_assign(&mut self, other: Self) {
        let (lo, carry) = self.lo.overflowing_add(other.lo);
        self.lo = lo;
        self.hi = self.hi.wrapping_add(other.hi).wrapping_add(i128::from(carry));
    }
}

// === impl Magnitude ===

impl Magnitude {
    fn product(a: u128, b: u128) -> Self {
        let halves = |x: u128| (x >> 64, x & u128::from(u64::MAX));
        let ((a1, a0), (b1, b0)) = (halves(a), halves(b));
        // Both are at most 2^96, so the two middle products together don't overflow.
        let middle = a1 * b0 + a0 * b1;
        let (lo, carry) = (a0 * b0).overflowing_add(middle << 64);
        Self { hi: a1 * b1 + (middle >> 64) + u128::from(carry), lo }
    }

    fn signed(self, negative: bool) -> Sum {
        let sum = Sum { hi: self.hi as i128, lo: self.lo };
        if negative { sum.negated() } else { sum }
    }

    fn divide(self, by: u64) -> (Self, u64) {
        let by = u128::from(by);
        let mut rest = 0;
        let mut quotient = [0_u128; 4];
        let low = u128::from(u64::MAX);
        let limbs = [self.hi >> 64, self.hi & low, self.lo >> 64, self.lo & low];
        for (into, limb) in quotient.iter_mut().zip(limbs) {
            let part = rest << 64 | limb;
            *into = part / by;
            rest = part % by;
        }
        let [a, b, c, d] = quotient;
        (Self { hi: a << 64 | b, lo: c << 64 | d }, rest as u64)
    }

    fn times_ten_plus(self, digit: u8) -> Option<Self> {
        let low = Self::product_small(self.lo, 10);
        let (lo, carry) = low.lo.overflowing_add(u128::from(digit));
        let hi = self.hi.checked_mul(10)?.checked_add(low.hi)?.checked_add(u128::from(carry))?;
        (hi <= i128::MAX as u128).then_some(Self { hi, lo })
    }

    fn product_small(a: u128, b: u128) -> Self {
        let (a1, a0) = (a >> 64, a & u128::from(u64::MAX));
        let (lo, carry) = (a0 * b).overflowing_add((a1 * b) << 64);
        Self { hi: ((a1 * b) >> 64) + u128::from(carry), lo }
    }

    fn fits(self) -> bool {
        self.hi == 0 && self.lo < DIGITS_END
    }

    fn to_decimal(mut self) -> Decimal {
        let mut scale = PLACES;
        // What was cut off: the last digit, and whether anything but zeros came after it.
        let (mut cut, mut below) = (0, false);
        while scale > 0 {
            let (quotient, digit) = self.divide(10);
            if self.fits() && (digit != 0 || cut != 0 || below) {
                break;
            }
            below |= cut != 0;
            cut = digit;
            self = quotient;
            scale -= 1;
        }
        if !self.fits() {
            return Decimal::MAX;
        }
        let odd = self.lo % 2 == 1;
        let up = cut > 5 || cut == 5 && (below || odd);
        // One more than the largest has no room at this scale, and with a place less it would be further off.
        if up && self.lo + 1 < DIGITS_END {
            self.lo += 1;
        }
        Decimal::from_i128_with_scale(self.lo as i128, scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_decimal() -> impl Strategy<Value = Decimal> {
        let digits = prop_oneof![-(1_i128 << 96) + 1..1 << 96, -100_000_i128..100_000, Just(0)];
        (digits, 0_u32..=28)
            .prop_map(|(digits, scale)| Decimal::from_i128_with_scale(digits, scale))
    }

    fn sum(numbers: &[Decimal]) -> Sum {
        let mut sum = Sum::default();
        for number in numbers {
            sum += Sum::from(*number);
        }
        sum
    }

    #[test]
    fn what_does_not_fit_is_rounded_or_the_largest() {
        let tiny = Decimal::new(1, 28);
        assert_eq!(sum(&[Decimal::MAX, tiny]).to_decimal(), Decimal::MAX);
        assert_eq!(sum(&[Decimal::MAX, Decimal::MAX]).to_decimal(), Decimal::MAX);
        assert_eq!(sum(&[Decimal::MIN, Decimal::MIN]).to_decimal(), Decimal::MIN);
        assert_eq!(sum(&[Decimal::MAX, tiny, Decimal::MIN]).to_decimal(), tiny);
        for (given, nearest) in [
            // 29 digits fit here; to the nearest, and a half to the even one.
            ("1234567890123456789012345678.04", "1234567890123456789012345678"),
            ("1234567890123456789012345678.06", "1234567890123456789012345678.1"),
            ("1234567890123456789012345678.05", "1234567890123456789012345678"),
            ("1234567890123456789012345678.15", "1234567890123456789012345678.2"),
            ("1234567890123456789012345678.0500001", "1234567890123456789012345678.1"),
            ("-1234567890123456789012345678.06", "-1234567890123456789012345678.1"),
            // ...33.6 would be 2^96 tenths, one more than there is room for; ...34 is further off than this.
            ("7922816251426433759354395033.55", "7922816251426433759354395033.5"),
            ("79228162514264337593543950335.9", "79228162514264337593543950335"),
        ] {
            let rounded = Sum::parse(given).unwrap().to_decimal();
            assert_eq!(rounded, nearest.parse().unwrap(), "{given}");
        }
    }

    #[test]
    fn beyond_the_largest_number_it_overflows() {
        let largest = "79228162514264337593543950335";
        for (given, overflows) in [
            (largest.to_owned(), false),
            (format!("-{largest}.9999999999999999999999999999"), false),
            ("79228162514264337593543950336".to_owned(), true),
            ("-79228162514264337593543950336".to_owned(), true),
            ("0".to_owned(), false),
        ] {
            assert_eq!(Sum::parse(&given).unwrap().overflows(), overflows, "{given}");
        }
        assert!(sum(&[Decimal::MIN; 40]).overflows());
    }

    #[test]
    fn a_text_that_is_no_number_is_none() {
        for wrong in ["NaN", "1e5", "1.2.3", "0.00000000000000000000000000001"] {
            assert_eq!(Sum::parse(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn one_number_comes_back(number in any_decimal()) {
            let sum = Sum::from(number);
            prop_assert_eq!(sum.to_decimal(), number);
            prop_assert_eq!(Sum::parse(&number.to_string()), Some(sum));
        }

        #[test]
        fn the_order_does_not_show(numbers in prop::collection::vec(any_decimal(), 0..20)) {
            let mut reversed = numbers.clone();
            reversed.reverse();
            prop_assert_eq!(sum(&numbers), sum(&reversed));
        }

        #[test]
        fn bytes_come_back(numbers in prop::collection::vec(any_decimal(), 0..4)) {
            let (sum, mut bytes) = (sum(&numbers), Vec::new());
            sum.encode(&mut bytes);
            bytes.push(7);
            prop_assert_eq!(Sum::decode(&bytes), Some((sum, &[7_u8][..])));
        }

        #[test]
        fn small_sums_are_as_decimals_add_them(
            a in -1_000_000_i64..1_000_000,
            b in -1_000_000_i64..1_000_000,
        ) {
            let (a, b) = (Decimal::new(a, 3), Decimal::new(b, 5));
            prop_assert_eq!(sum(&[a, b]).to_decimal(), a + b);
        }
    }
}
