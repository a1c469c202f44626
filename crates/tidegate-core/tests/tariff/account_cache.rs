//! Account cache: usage of a period stays cached until it is durable, and then within the capacity.

use crate::support::*;
use rust_decimal::Decimal;
use std::collections::BTreeMap;
use tidegate_core::tariff::{Evaluator, TierKey};
use tidegate_core::usage::UsageRecord;

/// A store that has what was written to it.
#[derive(Default)]
struct Store(Vec<UsageRecord>);

impl Store {
    fn used(&self, key: &TierKey) -> Decimal {
        let here = self.0.iter().filter(|record| {
            (&record.tenant, &record.meter) == (&key.tenant, &key.meter)
                && (key.from_ns..key.until_ns).contains(&record.time_ns)
        });
        here.map(|record| record.quantity).sum()
    }
}

fn two_tiers() -> Evaluator {
    Evaluator::with_capacity(set(vec![tariff("t", Some(tiers(&[(10, "2"), (0, "1")])))]), 8)
}

/// As a pipeline does it. Returns the amounts.
fn batch(evaluator: &mut Evaluator, store: &Store, records: &[UsageRecord]) -> Vec<Decimal> {
    evaluator.begin_batch();
    for key in evaluator.missing(records) {
        let used = store.used(&key);
        evaluator.load(&key, used);
    }
    assert_eq!(evaluator.missing(records), [], "all that was missing is there");
    records.iter().map(|record| evaluator.price(record.clone()).charge.amount).collect()
}

#[test]
fn a_sum_is_asked_for_once_and_then_known() {
    let (mut evaluator, mut store) = (two_tiers(), Store::default());
    store.0.push(record("a", "m", 8.into(), 0));
    let records = [record("a", "m", 1.into(), 5), record("a", "m", 2.into(), 6)];
    let keys = evaluator.missing(&records);
    assert_eq!(keys.len(), 1);
    assert_eq!((keys[0].from_ns, keys[0].until_ns), (0, 31 * 24 * HOUR_NS));
    assert_eq!(batch(&mut evaluator, &store, &records), [2.into(), 3.into()]);
    evaluator.load(&keys[0], 0.into());
    let next = batch(&mut evaluator, &store, &records[..1]);
    assert_eq!(next, [1.into()], "what is known is not overwritten by what the store still lacks");
    assert_eq!(evaluator.stats().unloaded, 0);
}

#[test]
fn meters_without_tiers_ask_for_nothing() {
    let evaluator = evaluator(vec![tariff("flat", Some(flat("1")))]);
    assert_eq!(
        evaluator.missing(&[record("a", "m", 1.into(), 0), record("a", "x", 1.into(), 0)]),
        []
    );
}

#[test]
fn a_sum_that_was_not_loaded_is_counted() {
    let mut evaluator = two_tiers();
    charge(&mut evaluator, 1.into(), 0);
    charge(&mut evaluator, 1.into(), 0);
    charge(&mut evaluator, 1.into(), 40 * 24 * HOUR_NS);
    assert_eq!(evaluator.stats().unloaded, 2);
}

#[test]
fn nothing_goes_before_it_is_durable() {
    let (mut evaluator, store) = (two_tiers(), Store::default());
    let names: Vec<_> = (0..20).map(|number| format!("tenant-{number}")).collect();
    for name in &names {
        batch(&mut evaluator, &store, &[record(name, "m", 10.into(), 0)]);
    }
    assert_eq!(evaluator.evict(0), 0);
    assert_eq!((evaluator.stats().keys, evaluator.stats().over_capacity), (20, 12));
    for name in &names {
        let amounts = batch(&mut evaluator, &store, &[record(name, "m", 1.into(), 0)]);
        assert_eq!(amounts, [1.into()], "all know that ten are used, though the store has none");
    }
    // The first batches are durable, but later ones have changed the same sums.
    assert_eq!(evaluator.evict(20), 0);
    assert_eq!(evaluator.evict(40), 13, "down to an eighth below the capacity");
    assert_eq!((evaluator.stats().keys, evaluator.stats().over_capacity), (7, 0));
    let missing = evaluator.missing(&[record("tenant-0", "m", 1.into(), 0)]);
    assert_eq!(missing.len(), 1, "the oldest went, and is asked for again");
    assert_eq!(evaluator.missing(&[record("tenant-19", "m", 1.into(), 0)]), []);
}

#[test]
fn names_that_need_no_sum_are_bounded_without_help() {
    let mut evaluator = Evaluator::with_capacity(set(vec![]), 100);
    for number in 0..10_000 {
        evaluator.begin_batch();
        evaluator.price(record(&format!("tenant-{number}"), "m", 1.into(), 0));
        assert!(evaluator.stats().keys <= 101, "{:?}", evaluator.stats());
    }
    assert!(evaluator.stats().evicted > 9_800);
}

#[test]
fn a_repeat_is_taken_out_again() {
    let (mut evaluator, store) = (two_tiers(), Store::default());
    let ten = record("a", "m", 10.into(), 0);
    batch(&mut evaluator, &store, std::slice::from_ref(&ten));
    batch(&mut evaluator, &store, std::slice::from_ref(&ten));
    evaluator.uncount(&ten);
    evaluator.uncount(&record("nobody", "m", 1.into(), 0));
    let next = batch(&mut evaluator, &store, &[record("a", "m", (-10).into(), 0)]);
    assert_eq!(next, [(-20).into()]);
}

#[test]
fn new_tariffs_know_what_was_used() {
    let (mut evaluator, store) = (two_tiers(), Store::default());
    batch(&mut evaluator, &store, &[record("a", "m", 10.into(), 0)]);
    evaluator.replace(set(vec![tariff("u", Some(tiers(&[(10, "5"), (0, "3")])))]));
    let priced = evaluator.price(record("a", "m", 1.into(), 0));
    assert_eq!((&*priced.charge.tariff, priced.charge.amount), ("u", 3.into()));
    // Flat for a while: the sum goes on, so it is right when tiers come back.
    evaluator.replace(set(vec![tariff("flat", Some(flat("1")))]));
    assert_eq!(&*evaluator.price(record("a", "m", (-2).into(), 0)).charge.tariff, "flat");
    evaluator.replace(set(vec![tariff("v", Some(tiers(&[(10, "5"), (0, "3")])))]));
    assert_eq!(evaluator.price(record("a", "m", 2.into(), 0)).charge.amount, 8.into());
}

proptest::proptest! {
    /// With any evictions, reloads and repeats, each tenant's total equals that of an unbounded cache.
    #[test]
    fn a_small_book_prices_like_a_large_one(
        batches in proptest::collection::vec(
            proptest::collection::vec((0..12_u8, 0..3_i64, 1..30_i64), 1..8), 1..60),
        lag in 0..5_usize,
    ) {
        let (mut small, mut store) = (two_tiers(), Store::default());
        let mut large: BTreeMap<(u8, i64), i64> = BTreeMap::new();
        let mut waiting = std::collections::VecDeque::new();
        for (number, uses) in (1_u64..).zip(batches) {
            let records: Vec<_> = uses.iter().map(|(tenant, month, quantity)| {
                record(&tenant.to_string(), "m", (*quantity).into(), month * 31 * 24 * HOUR_NS)
            }).collect();
            let amounts = batch(&mut small, &store, &records);
            for ((tenant, month, quantity), amount) in uses.into_iter().zip(amounts) {
                let used = large.entry((tenant, month)).or_default();
                let cost = |used: i64| used + used.min(10);
                let expected = Decimal::from(cost(*used + quantity) - cost(*used));
                proptest::prop_assert_eq!(amount, expected);
                *used += quantity;
            }
            waiting.push_back((number, records));
            while waiting.len() > lag {
                let (number, records) = waiting.pop_front().unwrap();
                store.0.extend(records);
                small.evict(number);
            }
        }
        proptest::prop_assert_eq!(small.stats().unloaded, 0);
    }
}
