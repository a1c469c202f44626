use crate::support::*;
use tidegate_core::tariff::{Days, TariffSpec};

#[track_caller]
fn warns(specs: Vec<TariffSpec>, expected: &[(usize, &str, &str)]) {
    let warnings = set(specs).warnings(utc("2026-06-01"));
    let places: Vec<_> =
        warnings.iter().map(|one| (one.location.tariff.unwrap(), one.location.key)).collect();
    let wanted: Vec<_> = expected.iter().map(|(number, key, _)| (*number, *key)).collect();
    assert_eq!(places, wanted, "{warnings:#?}");
    for (warning, (.., says)) in warnings.iter().zip(expected) {
        assert!(warning.text.contains(says), "{says:?} is not in {:?}", warning.text);
    }
}

#[test]
fn nothing_odd_warns_of_nothing() {
    warns(vec![tariff("a", Some(flat("1")))], &[]);
}

#[test]
fn hours_and_quantities_without_a_price_and_prices_without_hours() {
    let mut gaps = tariff("a", None);
    gaps.windows = vec![window(Days::WEEKDAYS, 0, 24, tiers(&[(10, "1")]))];
    warns(vec![gaps], &[(0, "", "from sat 00:00 to mon 00:00"), (0, "tiers", "beyond 10 a month")]);
    let mut full = tariff("a", Some(flat("1")));
    full.windows = vec![window(Days::ALL, 0, 24, flat("1"))];
    warns(vec![full], &[(0, "price", "never holds")]);
}

#[test]
fn dates_without_a_tariff() {
    let (mut old, mut new) = (tariff("old", Some(flat("1"))), tariff("new", Some(flat("1"))));
    (old.effective_until, new.effective_from) = (date(2027, 1, 1), date(2027, 2, 1));
    let gap = (1, "effective_from", "(2027-01-01) and the beginning of \"new\" (2027-02-01)");
    warns(vec![old.clone(), new.clone()], &[gap]);
    let mut any = tariff("any", Some(flat("1")));
    any.meter = "*".to_owned();
    warns(vec![old.clone(), new.clone(), any.clone()], &[]);
    any.effective_until = date(2027, 1, 15);
    warns(vec![old.clone(), new, any], &[gap]);
    old.effective_until = date(2026, 6, 1);
    warns(vec![old], &[(0, "effective_until", "over since 2026-06-01")]);
}

#[test]
fn tenants_who_get_another_tariff_than_one_might_think() {
    let mut own = tariff("own", Some(flat("1")));
    (own.tenants, own.meter) = (listed(&["x"]), "tokens.*".to_owned());
    let mut exact = tariff("exact", Some(flat("1")));
    exact.meter = "tokens.output".to_owned();
    let only = (0, "tenants", "only \"x\" can use \"tokens.*\"");
    warns(vec![own.clone(), exact], &[(0, "meter", "wins over everyone's"), only]);
    warns(vec![own], &[only]);
}
