//! All that is wrong is told at once, and where.

use crate::support::*;
use tidegate_core::tariff::{Days, FallbackSpec, Location, TariffError, TariffSpec, Tariffs};

fn errors(specs: Vec<TariffSpec>) -> Vec<TariffError> {
    Tariffs::new(specs, FallbackSpec::default()).unwrap_err()
}

#[track_caller]
fn assert_error(change: impl FnOnce(&mut TariffSpec), location: Location, says: &str) {
    let mut spec = tariff("a", Some(flat("1")));
    change(&mut spec);
    let all = errors(vec![spec]);
    let found = all.iter().find(|one| one.location == location && one.to_string().contains(says));
    assert!(found.is_some(), "{says:?} at {location:?} is not in {all:?}");
    assert_eq!(all.len(), 1, "{all:?}");
}

#[test]
fn each_error_says_where_and_what() {
    let at = Location::tariff(0);
    assert_error(|a| a.name.clear(), at.key("name"), "no name");
    assert_error(|a| a.name = "fallback".to_owned(), at.key("name"), "is taken");
    assert_error(|a| a.meter = "to*ns".to_owned(), at.key("meter"), "stands for nothing");
    assert_error(|a| a.meter = "tokens*".to_owned(), at.key("meter"), "stands for nothing");
    assert_error(|a| a.tenants = listed(&[]), at.key("tenants"), "no tenant");
    assert_error(|a| a.tenants = listed(&["x", "x"]), at.key("tenants"), "twice");
    assert_error(|a| a.tenants = listed(&["x", "*"]), at.key("tenants"), "in a list");
    assert_error(|a| a.per = 0, at.key("per"), "per is 0");
    assert_error(|a| a.time_zone = "Berlin".to_owned(), at.key("time_zone"), "no time zone");
    assert_error(|a| a.price = None, at, "no price");
    assert_error(|a| a.price = Some(flat("-1")), at.key("price"), "0 or more");
    assert_error(|a| a.price = Some(tiers(&[])), at.key("tiers"), "0 tiers");
    let backwards = |a: &mut TariffSpec| {
        (a.effective_from, a.effective_until) = (date(2026, 2, 1), date(2026, 2, 1));
    };
    assert_error(backwards, at.key("effective_until"), "not after");
}

#[test]
fn a_price_that_would_be_rounded_is_refused() {
    let at = Location::tariff(0).key("price");
    let third = |a: &mut TariffSpec| {
        (a.price, a.per) = (Some(flat("2.50")), 3_600);
    };
    assert_error(third, at, "write \"0.000694444444444\" with per = 1");
}

#[test]
fn tiers_rise_and_have_a_period() {
    let at = Location::tariff(0);
    let tiers_of = |borders: &'static [(i64, &'static str)]| {
        move |a: &mut TariffSpec| a.price = Some(tiers(borders))
    };
    assert_error(tiers_of(&[(10, "2"), (10, "1")]), at.tier(1).key("up_to"), "not more than 10");
    assert_error(tiers_of(&[(0, "2"), (10, "1")]), at.tier(0), "not the last");
    let without = |a: &mut TariffSpec| {
        (a.price, a.period) = (Some(tiers(&[(10, "2"), (0, "1")])), None);
    };
    assert_error(without, at.key("period"), "no period");
}

#[test]
fn a_closed_tier_and_a_fallback_in_other_money_do_not_mix() {
    let fallback = FallbackSpec { price: 1.into(), ..FallbackSpec::default() };
    let mut spec = tariff("a", Some(tiers(&[(10, "2")])));
    spec.currency = "EUR".parse().unwrap();
    let all = Tariffs::new(vec![spec.clone()], fallback.clone()).unwrap_err();
    assert!(all[0].wrong.contains("in USD instead of EUR"), "{all:?}");
    spec.price = Some(tiers(&[(10, "2"), (0, "1")]));
    assert!(Tariffs::new(vec![spec], fallback).is_ok());
}

#[test]
fn windows_may_touch_but_not_overlap() {
    let with = |windows: Vec<_>| {
        move |a: &mut TariffSpec| {
            (a.price, a.windows) = (None, windows);
        }
    };
    let day = || window(Days::WEEKDAYS, 6, 22, flat("2"));
    let night = || window(Days::ALL, 22, 6, flat("1"));
    let mut fits = tariff("fits", None);
    fits.windows = vec![day(), night()];
    assert!(Tariffs::new(vec![fits], FallbackSpec::default()).is_ok());
    let at = Location::tariff(0).window(1);
    let late = window(Days::NONE.with(6), 20, 7, flat("3"));
    assert_error(with(vec![day(), late.clone()]), at, "overlaps the window \"6-22\" on mon 06:00");
    assert_error(with(vec![night(), late]), at, "overlaps the window \"22-6\" on sun 22:00");
    assert_error(
        with(vec![window(Days::ALL, 5, 5, flat("1"))]),
        Location::tariff(0).window(0),
        "00:00 to 24:00",
    );
    let none = window(Days::NONE, 5, 6, flat("1"));
    assert_error(with(vec![none]), Location::tariff(0).window(0).key("days"), "no days");
}

#[test]
fn two_tariffs_for_the_same_at_the_same_time_are_refused() {
    let (mut a, mut b, mut c) =
        (tariff("a", Some(flat("1"))), tariff("b", Some(flat("1"))), tariff("c", Some(flat("1"))));
    a.tenants = listed(&["x", "y"]);
    b.tenants = listed(&["y", "z"]);
    c.tenants = listed(&["z"]);
    b.effective_from = date(2026, 1, 1);
    c.effective_from = date(2026, 6, 1);
    let all = errors(vec![a.clone(), b.clone(), c.clone()]);
    assert_eq!(all.len(), 2, "{all:?}");
    assert!(all[0].wrong.contains("\"a\" and \"b\" both price \"m\" of \"y\""), "{all:?}");
    assert!(all[1].wrong.contains("\"b\" and \"c\" both price \"m\" of \"z\""), "{all:?}");
    a.effective_until = date(2026, 1, 1);
    b.effective_until = date(2026, 6, 1);
    assert!(Tariffs::new(vec![a, b, c], FallbackSpec::default()).is_ok());
}

#[test]
fn all_errors_are_told_at_once() {
    let mut wrong = tariff("a", Some(flat("-1")));
    wrong.time_zone = "Mars/Olympus".to_owned();
    let mut also = tariff("a", None);
    also.per = 0;
    let texts: Vec<_> = errors(vec![wrong, also]).iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), 4, "{texts:#?}");
}
