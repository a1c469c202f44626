use rust_decimal::Decimal;

/// Largest mantissa of a decimal number.
const MANTISSA_MAX: u128 = (1 << 96) - 1;

/// Product, or `None` if it is not exact. The library's own product rounds instead.
pub(super) fn mul(a: Decimal, b: Decimal) -> Option<Decimal> {
    match product(a, b) {
        Some(exact) => Some(exact),
        None => product(a.normalize(), b.normalize()),
    }
}

/// Sum, or `None` if it is not exact.
pub(super) fn add(a: Decimal, b: Decimal) -> Option<Decimal> {
    if a.scale() == b.scale() {
        return fit(a.mantissa() + b.mantissa(), a.scale());
    }
    match sum(a, b) {
        Some(exact) => Some(exact),
        None => sum(a.normalize(), b.normalize()),
    }
}

/// Difference, or `None` if it is not exact.
pub(super) fn sub(a: Decimal, b: Decimal) -> Option<Decimal> {
    add(a, -b)
}

/// Quotient, or `None` if it is periodic, such as a third, or does not fit.
pub(super) fn div(price: Decimal, per: u64) -> Option<Decimal> {
    if per == 0 {
        return None;
    }
    let common = gcd(price.mantissa().unsigned_abs(), u128::from(per));
    let mut rest = u128::from(per) / common;
    let mut mantissa = price.mantissa() / i128::try_from(common).ok()?;
    let mut scale = price.scale();
    // A fraction terminates if its denominator has only the factors 2 and 5.
    while rest > 1 {
        let (divisor, factor) = match (rest % 10, rest % 2, rest % 5) {
            (0, ..) => (10, 1),
            (_, 0, _) => (2, 5),
            (.., 0) => (5, 2),
            _ => return None,
        };
        rest /= divisor;
        mantissa = mantissa.checked_mul(factor)?;
        scale += 1;
    }
    fit(mantissa, scale)
}

fn product(a: Decimal, b: Decimal) -> Option<Decimal> {
    let (x, y) = (a.mantissa(), b.mantissa());
    let mantissa = match (i64::try_from(x), i64::try_from(y)) {
        (Ok(x), Ok(y)) => i128::from(x) * i128::from(y),
        _ => x.checked_mul(y)?,
    };
    fit(mantissa, a.scale() + b.scale())
}

fn sum(a: Decimal, b: Decimal) -> Option<Decimal> {
    let scale = a.scale().max(b.scale());
    let widen = |number: Decimal| {
        let factor = 10_i128.pow(scale - number.scale());
        number.mantissa().checked_mul(factor)
    };
    fit(widen(a)?.checked_add(widen(b)?)?, scale)
}

/// Number without trailing zeros where it would not fit otherwise.
fn fit(mut mantissa: i128, mut scale: u32) -> Option<Decimal> {
    while scale > Decimal::MAX_SCALE || mantissa.unsigned_abs() > MANTISSA_MAX {
        if scale == 0 || mantissa % 10 != 0 {
            return None;
        }
        mantissa /= 10;
        scale -= 1;
    }
    Decimal::try_from_i128_with_scale(mantissa, scale).ok()
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn number(text: &str) -> Decimal {
        text.parse().unwrap()
    }

    #[test]
    fn a_product_that_would_be_rounded_is_refused() {
        let tiny = number("0.00000000000000000001");
        assert_eq!(tiny.checked_mul(tiny), Some(Decimal::ZERO), "what the library does");
        assert_eq!(mul(tiny, tiny), None);
        assert_eq!(mul(Decimal::MAX, number("10")), None);
        assert_eq!(mul(Decimal::MAX, Decimal::ONE), Some(Decimal::MAX));
        assert_eq!(
            mul(number("0.50000000000000"), number("2.00000000000000000000")),
            Some(1.into())
        );
    }

    #[test]
    fn a_sum_that_would_be_rounded_is_refused() {
        let tiny = number("0.0000000000000000000000000001");
        assert_eq!(add(number("1000000"), tiny), None);
        assert_eq!(add(Decimal::MAX, Decimal::ONE), None);
        assert_eq!(sub(Decimal::MAX, Decimal::MAX), Some(Decimal::ZERO));
        assert_eq!(add(number("79228162514264337593543950335"), number("0.0")), Some(Decimal::MAX));
    }

    #[test]
    fn a_quotient_ends_or_is_refused() {
        assert_eq!(div(number("0.15"), 1_000_000), Some(number("0.00000015")));
        assert_eq!(div(number("2.52"), 3_600), Some(number("0.0007")));
        assert_eq!(div(number("2.50"), 3_600), None);
        assert_eq!(div(Decimal::ZERO, 7), Some(Decimal::ZERO));
        assert_eq!(div(Decimal::ONE, 0), None);
    }

    proptest! {
        #[test]
        fn what_is_given_is_exact(
            a in any::<i64>(), b in any::<i64>(), s in 0..20_u32, z in 0..20_u32,
        ) {
            let (x, y) = (Decimal::new(a, s), Decimal::new(b, z));
            if let Some(product) = mul(x, y) {
                let wide = i128::from(a) * i128::from(b);
                let up = 10_i128.pow((s + z).saturating_sub(product.scale()));
                prop_assert_eq!(product.mantissa().checked_mul(up), Some(wide));
            }
            if let Some(sum) = add(x, y) {
                prop_assert_eq!(sub(sum, y), Some(x));
            }
        }
    }
}
