//! Hours are those on the clocks of the tariff's zone, and dates those of its calendar.

use crate::support::*;
use jiff::Timestamp;
use jiff::civil::Weekday;
use jiff::tz::TimeZoneDatabase;
use proptest::prelude::*;
use rust_decimal::Decimal;
use tidegate_core::tariff::{Days, Evaluator, TariffSpec};
use tidegate_core::usage::Fallback;

/// By day 3, in the evening on weekdays 5, on Friday night 7 until Saturday morning, else 1.
fn by_hours(zone: &str) -> TariffSpec {
    let mut spec = tariff("hours", Some(flat("1")));
    spec.time_zone = zone.to_owned();
    spec.windows = vec![
        window(Days::WEEKDAYS, 7, 17, flat("3")),
        window(Days::WEEKDAYS, 17, 20, flat("5")),
        window(Days::NONE.with(4), 22, 6, flat("7")),
    ];
    spec
}

/// The same from the calendar library's clocks.
fn expected(zone: &str, time_ns: i64) -> Decimal {
    let zone = TimeZoneDatabase::bundled().get(zone).unwrap();
    let local = zone.to_datetime(Timestamp::from_nanosecond(time_ns.into()).unwrap());
    let weekday = local.weekday();
    let weekend = matches!(weekday, Weekday::Saturday | Weekday::Sunday);
    let price = match (weekday, local.hour()) {
        (Weekday::Friday, 22..) | (Weekday::Saturday, ..=5) => 7,
        (_, 7..=16) if !weekend => 3,
        (_, 17..=19) if !weekend => 5,
        _ => 1,
    };
    price.into()
}

/// The sum of one unit in each of the hours of a day in Berlin.
fn day(evaluator: &mut Evaluator, from: &str, hours: i64) -> Decimal {
    let from_ns = utc(from);
    let charges =
        (0..hours).map(|hour| charge(evaluator, Decimal::ONE, from_ns + hour * HOUR_NS).amount);
    charges.sum()
}

#[test]
fn days_on_which_clocks_change_have_23_and_25_hours() {
    let mut spec = tariff("night", Some(flat("1")));
    spec.time_zone = "Europe/Berlin".to_owned();
    spec.windows = vec![window(Days::ALL, 0, 6, flat("10"))];
    let mut evaluator = evaluator(vec![spec]);
    assert_eq!(day(&mut evaluator, "2026-06-14T22:00:00Z", 24), (6 * 10 + 18).into());
    // From midnight to six there are five hours, then seven.
    assert_eq!(day(&mut evaluator, "2026-03-28T23:00:00Z", 23), (5 * 10 + 18).into());
    assert_eq!(day(&mut evaluator, "2026-10-24T22:00:00Z", 25), (7 * 10 + 18).into());
}

#[test]
fn a_window_ends_to_the_nanosecond() {
    let mut evaluator = evaluator(vec![by_hours("Europe/Berlin")]);
    // 17:00 in Berlin, on a Monday in summer.
    let evening = utc("2026-06-15T15:00:00Z");
    assert_eq!(charge(&mut evaluator, Decimal::ONE, evening - 1).amount, 3.into());
    assert_eq!(charge(&mut evaluator, Decimal::ONE, evening).amount, 5.into());
    assert_eq!(charge(&mut evaluator, Decimal::ONE, evening - 1).amount, 3.into());
}

#[test]
fn a_tariff_holds_from_midnight_in_its_zone() {
    let mut old = tariff("old", Some(flat("1")));
    let mut new = tariff("new", Some(flat("2")));
    old.time_zone = "Asia/Tokyo".to_owned();
    new.time_zone.clone_from(&old.time_zone);
    (old.effective_until, new.effective_from) = (date(2026, 4, 1), date(2026, 4, 1));
    new.effective_until = date(2027, 1, 1);
    let mut evaluator = evaluator(vec![new, old]);
    let midnight = utc("2026-03-31T15:00:00Z");
    assert_eq!(&*charge(&mut evaluator, Decimal::ONE, midnight - 1).tariff, "old");
    assert_eq!(&*charge(&mut evaluator, Decimal::ONE, midnight).tariff, "new");
    let over = charge(&mut evaluator, Decimal::ONE, utc("2026-12-31T15:00:00Z"));
    assert_eq!((over.fallback, &*over.tariff), (Some(Fallback::NotInEffect), "fallback"));
}

#[test]
fn ones_own_tariff_wins_while_it_holds() {
    let (everyone, mut own) = (tariff("everyone", Some(flat("2"))), tariff("own", Some(flat("1"))));
    own.tenants = listed(&["t"]);
    (own.effective_from, own.effective_until) = (date(2026, 2, 1), date(2026, 3, 1));
    let mut evaluator = evaluator(vec![everyone, own]);
    let names = ["2026-01-31", "2026-02-01", "2026-02-28", "2026-03-01"]
        .map(|day| charge(&mut evaluator, Decimal::ONE, utc(day)).tariff.to_string());
    assert_eq!(names, ["everyone", "own", "own", "everyone"]);
}

#[test]
fn hours_without_a_price_are_told() {
    let mut spec = tariff("days", None);
    spec.windows = vec![window(Days::WEEKDAYS, 8, 18, flat("1"))];
    let mut evaluator = evaluator(vec![spec]);
    let night = charge(&mut evaluator, Decimal::ONE, utc("2026-06-15T20:00:00Z"));
    assert_eq!((night.fallback, night.amount), (Some(Fallback::NoWindow), Decimal::ZERO));
    assert_eq!(charge(&mut evaluator, Decimal::ONE, utc("2026-06-15T12:00:00Z")).fallback, None);
}

proptest! {
    #[test]
    fn prices_are_those_of_the_clocks_on_the_wall(
        base in -2_000_000_000_i64..8_000_000_000,
        steps in prop::collection::vec(-400_000_i64..400_000, 1..60),
    ) {
        for zone in ["Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kathmandu"] {
            let mut evaluator = evaluator(vec![by_hours(zone)]);
            for step in &steps {
                let time_ns = (base + step) * 1_000_000_000;
                let amount = charge(&mut evaluator, Decimal::ONE, time_ns).amount;
                prop_assert_eq!(amount, expected(zone, time_ns), "{} at {}", zone, time_ns);
            }
        }
    }

    /// Around the changes of clocks, minute by minute, where errors would be.
    #[test]
    fn prices_are_right_around_changes_of_clocks(
        year in 1980_i16..2100, minutes in prop::collection::vec(-3_000_i64..3_000, 1..40),
    ) {
        for zone in ["Europe/Berlin", "America/New_York", "Africa/Cairo"] {
            let theirs = TimeZoneDatabase::bundled().get(zone).unwrap();
            let new_year = jiff::civil::date(year, 1, 1).to_zoned(theirs.clone()).unwrap();
            let new_year = new_year.timestamp();
            let mut evaluator = evaluator(vec![by_hours(zone)]);
            for change in theirs.following(new_year).take(2) {
                for minute in &minutes {
                    let time_ns = (change.timestamp().as_second() + minute * 60) * 1_000_000_000;
                    let amount = charge(&mut evaluator, Decimal::ONE, time_ns).amount;
                    prop_assert_eq!(amount, expected(zone, time_ns), "{} at {}", zone, time_ns);
                }
            }
        }
    }
}
