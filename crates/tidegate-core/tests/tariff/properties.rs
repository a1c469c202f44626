use crate::support::*;
use jiff::tz::TimeZone;
use jiff::{Timestamp, civil};
use proptest::prelude::*;
use rust_decimal::Decimal;
use std::collections::BTreeMap;
use tidegate_core::tariff::{Days, FallbackSpec, Period, TariffSpec, Tariffs};
use tidegate_core::usage::{Currency, Fallback};

fn by_tiers() -> TariffSpec {
    tariff("tiers", Some(tiers(&[(100, "0.60"), (1_000, "0.50"), (0, "0.41")])))
}

/// Cost of a quantity in tenths within one period by [`by_tiers`], counted unit by unit.
fn cumulative(tenths: i64) -> Decimal {
    let (one, two) = (tenths.min(1_000), (tenths - 1_000).clamp(0, 9_000));
    let three = (tenths - 10_000).max(0);
    Decimal::new(one * 60 + two * 50 + three * 41, 3)
}

#[test]
fn an_unknown_meter_is_priced_by_the_fallback() {
    let fallback = FallbackSpec {
        name: "unpriced".to_owned(),
        price: number("0.5"),
        currency: "EUR".parse().unwrap(),
    };
    let tariffs = Tariffs::new(vec![by_tiers()], fallback).unwrap();
    let mut evaluator = tidegate_core::tariff::Evaluator::new(tariffs.into());
    let charge = evaluator.price(record("t", "other", 3.into(), 0)).charge;
    assert_eq!((charge.amount, charge.currency.code()), (number("1.5"), "EUR"));
    assert_eq!((&*charge.tariff, charge.fallback), ("unpriced", Some(Fallback::UnknownMeter)));
}

#[test]
fn beyond_the_last_tier_is_never_silent() {
    let mut evaluator = evaluator(vec![tariff("closed", Some(tiers(&[(10, "1"), (20, "0.5")])))]);
    assert_eq!(charge(&mut evaluator, 15.into(), 0).fallback, None);
    let crossing = charge(&mut evaluator, 15.into(), 0);
    assert_eq!(crossing.amount, number("2.5"), "what is within the tiers keeps its price");
    assert_eq!((crossing.fallback, &*crossing.tariff), (Some(Fallback::NoTier), "closed"));
    assert_eq!(charge(&mut evaluator, (-15).into(), 0).amount, number("-2.5"));
    assert_eq!(charge(&mut evaluator, 5.into(), 0).fallback, None, "and then it is within again");
}

#[test]
fn what_does_not_fit_is_told_and_changes_nothing_else() {
    let mut evaluator = evaluator(vec![by_tiers()]);
    let too_much = charge(&mut evaluator, Decimal::MAX, 0);
    assert_eq!((too_much.fallback, too_much.amount), (Some(Fallback::OutOfRange), Decimal::ZERO));
    // It is counted, as a store counts it; the next does not fit into the sum.
    assert_eq!(charge(&mut evaluator, 1.into(), 0).fallback, Some(Fallback::OutOfRange));
    assert_eq!(charge(&mut evaluator, Decimal::MIN, 0).fallback, Some(Fallback::OutOfRange));
    let next = charge(&mut evaluator, 1.into(), 0);
    assert_eq!((next.fallback, next.amount), (None, number("0.60")));
}

#[test]
fn windows_with_tiers_share_one_count() {
    let mut spec = by_tiers();
    spec.windows = vec![window(Days::ALL, 12, 24, tiers(&[(100, "6"), (0, "5")]))];
    let mut evaluator = evaluator(vec![spec]);
    assert_eq!(charge(&mut evaluator, 90.into(), 0).amount, number("54"));
    let noon = charge(&mut evaluator, 20.into(), 12 * HOUR_NS);
    assert_eq!(noon.amount, number("110"), "ten units at 6, ten at 5");
    assert_eq!(charge(&mut evaluator, 10.into(), 0).amount, number("5"));
}

#[test]
fn a_change_of_price_within_a_month_goes_on_counting() {
    let mut old = tariff("flat", Some(flat("1")));
    let mut new = by_tiers();
    (old.effective_until, new.effective_from) = (date(1970, 1, 16), date(1970, 1, 16));
    let mut evaluator = evaluator(vec![old, new]);
    assert_eq!(charge(&mut evaluator, 100.into(), 0).amount, 100.into());
    let after = charge(&mut evaluator, 10.into(), 20 * 24 * HOUR_NS);
    assert_eq!(after.amount, number("5.0"), "tiers count what was used, whatever priced it");
}

#[test]
fn the_parts_of_a_quote_are_what_an_evaluator_charges() {
    let specs = vec![by_tiers()];
    let quote = set(specs.clone()).quote(("t", "m"), 0, 95.into(), 10.into());
    let mut evaluator = evaluator(specs);
    charge(&mut evaluator, 95.into(), 0);
    assert_eq!(charge(&mut evaluator, 10.into(), 0), quote.charge);
    let parts: Vec<_> = quote.parts.iter().map(|part| (part.tier, part.quantity)).collect();
    assert_eq!(parts, [(Some(0), 5.into()), (Some(1), 5.into())]);
    assert_eq!(quote.parts.iter().map(|part| part.amount).sum::<Decimal>(), quote.charge.amount);
    let key = quote.tier_key.unwrap();
    assert_eq!((key.from_ns, key.until_ns), (0, 31 * 24 * HOUR_NS));
}

proptest! {
    /// Quantities of several tenants in several months, in any order: each month of each tenant costs what its
    /// total costs, and corrections are quantities like any other.
    #[test]
    fn totals_depend_on_totals_alone(
        uses in prop::collection::vec((0..3_usize, 0..70_i64, -3_000..4_000_i64), 1..120),
        zone in prop::sample::select(vec!["UTC", "Europe/Berlin", "America/St_Johns"]),
    ) {
        let mut spec = by_tiers();
        spec.time_zone = zone.to_owned();
        let mut evaluator = evaluator(vec![spec]);
        let theirs = jiff::tz::TimeZoneDatabase::bundled().get(zone).unwrap();
        let mut totals: BTreeMap<(usize, civil::Date), (i64, Decimal)> = BTreeMap::new();
        for (tenant, day, tenths) in uses {
            let time_ns = utc("2026-03-01") + day * 23 * HOUR_NS;
            let at = Timestamp::from_nanosecond(time_ns.into()).unwrap();
            let month = theirs.to_datetime(at).date().first_of_month();
            let (name, quantity) = (["a", "b", "c"][tenant], Decimal::new(tenths, 1));
            let priced = evaluator.price(record(name, "m", quantity, time_ns));
            prop_assert_eq!(priced.charge.fallback, None);
            let total = totals.entry((tenant, month)).or_default();
            total.0 += tenths;
            total.1 += priced.charge.amount;
        }
        for (tenths, amount) in totals.into_values() {
            prop_assert_eq!(amount, cumulative(tenths));
        }
    }

    /// Nothing panics, a gap is always told, and what is not a gap is exact.
    #[test]
    fn anything_may_come(
        uses in prop::collection::vec(
            (any::<i128>(), 32..127_u32, 0..29_u32, any::<i64>(), 0..3_usize), 1..60,
        ),
        period in prop::sample::select(Period::ALL.to_vec()),
    ) {
        let mut spec = by_tiers();
        (spec.period, spec.time_zone) = (Some(period), "Europe/Berlin".to_owned());
        spec.windows = vec![window(Days::WEEKDAYS, 22, 6, flat("0.123456789"))];
        let mut days = tariff("days", None);
        days.meter = "n".to_owned();
        days.windows = vec![window(Days::WEEKEND, 0, 24, flat("2"))];
        let mut evaluator = evaluator(vec![spec, days]);
        for (mantissa, shift, scale, time_ns, meter) in uses {
            let quantity = Decimal::from_i128_with_scale(mantissa >> shift, scale);
            let meter = ["m", "n", "unknown"][meter];
            let charge = evaluator.price(record("t", meter, quantity, time_ns)).charge;
            match charge.fallback {
                Some(_) => prop_assert_eq!(charge.amount, Decimal::ZERO),
                None => prop_assert_eq!(charge.currency, Currency::USD),
            }
            prop_assert_eq!(charge.fallback == Some(Fallback::UnknownMeter), meter == "unknown");
            if meter == "n" && charge.fallback.is_none() {
                prop_assert_eq!(charge.amount.checked_sub(quantity), Some(quantity));
            }
        }
    }

    #[test]
    fn the_order_does_not_change_flat_totals(
        mut uses in prop::collection::vec((0..1_000_i64, 0..10_000_000_i64), 1..100),
    ) {
        let mut spec = tariff("hours", Some(flat("0.25")));
        spec.windows = vec![window(Days::ALL, 6, 18, flat("0.75"))];
        let total = |uses: &[(i64, i64)]| -> Decimal {
            let mut evaluator = evaluator(vec![spec.clone()]);
            let one = |(quantity, at_s): &(i64, i64)| {
                charge(&mut evaluator, Decimal::new(*quantity, 2), at_s * 1_000_000_000).amount
            };
            uses.iter().map(one).sum()
        };
        let first = total(&uses);
        uses.sort();
        prop_assert_eq!(first, total(&uses));
        uses.reverse();
        prop_assert_eq!(first, total(&uses));
    }
}

#[test]
fn a_year_begins_in_the_tariff_s_zone() {
    let mut spec = by_tiers();
    (spec.period, spec.time_zone) = (Some(Period::Year), "Pacific/Auckland".to_owned());
    let tariffs = set(vec![spec]);
    let begins = civil::date(2026, 1, 1).to_zoned(TimeZone::get("Pacific/Auckland").unwrap());
    let key = tariffs.quote(("t", "m"), utc("2026-07-01"), 0.into(), 1.into()).tier_key.unwrap();
    assert_eq!(i128::from(key.from_ns), begins.unwrap().timestamp().as_nanosecond());
}
