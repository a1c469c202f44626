//! A store that can't be wrong, because it is too slow to be anything else; and histories to hold others against.

use crate::place::Place;
use crate::records::{MINUTE_NS, NOW_NS, all, scan, sort};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use rust_decimal::Decimal;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tidegate::store::{Appended, BatchRefusal, Origin, PricedBatch, Store, UsageBy, UsageQuery};
use tidegate::usage::{Fallback, PricedRecord, UsageCharge, UsageRecord};

/// How many histories; each is on a store of its own.
const HISTORIES: usize = 12;

const ALL_BY: [UsageBy; 4] = [UsageBy::Tenant, UsageBy::Meter, UsageBy::Both, UsageBy::Client];

#[derive(Clone, Debug)]
enum Step {
    Append(Vec<PricedBatch>),
    Reopen,
    Ask(UsageQuery),
}

/// Everything that was ever appended.
#[derive(Default)]
struct Model {
    seen: BTreeMap<Arc<str>, (u64, BTreeSet<u64>)>,
    /// Each with the client that sent it.
    records: Vec<(String, PricedRecord)>,
}

/// A row as a test compares it.
type Row = (Names, String, u64, u64, Option<Decimal>, Decimal);

/// Tenant, meter and client.
type Names = [Option<String>; 3];

fn any_record() -> impl Strategy<Value = PricedRecord> {
    let name = prop::sample::select(vec!["a", "b", "ab", "é", "a\0"]);
    let minutes = prop_oneof![0_i64..3, -3_000_i64..3_000, -2_000_000_i64..2_000_000];
    // Sums of these fit into a decimal number, so that it is a judge.
    let number = (-1_000_000_000_i64..1_000_000_000, 0_u32..=6)
        .prop_map(|(digits, scale)| Decimal::new(digits, scale));
    let currency = prop::sample::select(vec!["USD", "EUR"]);
    (name.clone(), name, number.clone(), number, minutes, 0..MINUTE_NS, currency, 0_u8..=4)
        .prop_map(|(tenant, meter, quantity, amount, minutes, rest_ns, currency, fallback)| {
            PricedRecord {
                record: UsageRecord {
                    tenant: Arc::from(tenant),
                    meter: Arc::from(meter),
                    quantity,
                    time_ns: NOW_NS + minutes * MINUTE_NS + rest_ns,
                    labels: Arc::from(""),
                },
                charge: UsageCharge {
                    amount,
                    currency: currency.parse().unwrap(),
                    tariff: Arc::from("t"),
                    fallback: Fallback::from_code(fallback),
                },
            }
        })
}

fn any_batch() -> impl Strategy<Value = PricedBatch> {
    let sender = prop::sample::select(vec!["s", "t"]);
    let seq = prop_oneof![9 => 1_u64..12, 1 => 1_020_u64..1_040];
    let origin =
        prop::option::weighted(0.9, (sender, seq, prop_oneof![3 => Just(0), 1 => 0_u64..8]));
    let source = prop::sample::select(vec!["model", "client/a", "client/a\0", "client/é"]);
    let any = (origin, source, prop::collection::vec(any_record(), 0..12));
    any.prop_map(|(origin, source, records)| PricedBatch {
        origin: origin.map(|(sender, seq, settled)| Origin {
            sender: Arc::from(sender),
            owner: None,
            seq,
            settled,
        }),
        source: Arc::from(source),
        records,
    })
}

fn any_step() -> impl Strategy<Value = Step> {
    let name = || prop::option::weighted(0.3, prop::sample::select(vec!["a", "ab", "é", "x"]));
    let client = prop::option::weighted(0.3, prop::sample::select(vec!["", "a", "a\0", "x"]));
    let by = prop::sample::select(ALL_BY.to_vec());
    let minute = || prop_oneof![-4_i64..4, -4_000_i64..4_000, -3_000_000_i64..3_000_000];
    prop_oneof![
        6 => prop::collection::vec(any_batch(), 0..4).prop_map(Step::Append),
        1 => Just(Step::Reopen),
        3 => (by, minute(), minute(), name(), name(), client).prop_map(ask),
    ]
}

fn ask(
    (by, from, until, tenant, meter, client): (
        UsageBy,
        i64,
        i64,
        Option<&str>,
        Option<&str>,
        Option<&str>,
    ),
) -> Step {
    let (from_ns, until_ns) = (NOW_NS + from * MINUTE_NS, NOW_NS + until * MINUTE_NS);
    Step::Ask(UsageQuery::new(by, from_ns, until_ns).only(tenant, meter).of_client(client))
}

impl Model {
    fn append(&mut self, batch: &PricedBatch) -> Appended {
        let outcome = self.outcome(batch);
        if outcome == Appended::New {
            let client = batch.source.strip_prefix("client/").unwrap_or_default();
            let records = batch.records.iter().cloned();
            self.records.extend(records.map(|priced| (client.to_owned(), priced)));
        }
        outcome
    }

    fn outcome(&mut self, batch: &PricedBatch) -> Appended {
        let Some(origin) = &batch.origin else { return Appended::New };
        let (settled, seen) = self.seen.entry(origin.sender.clone()).or_default();
        *settled = (*settled).max(origin.settled);
        // All that is settled, and what follows it without a gap.
        let mut low = *settled;
        while seen.contains(&(low + 1)) {
            low += 1;
        }
        if origin.seq <= low || seen.contains(&origin.seq) {
            Appended::Repeat
        } else if origin.seq > low + 1024 {
            Appended::Refused(BatchRefusal::TooFar)
        } else {
            seen.insert(origin.seq);
            Appended::New
        }
    }

    fn usage(&self, query: &UsageQuery) -> Vec<Row> {
        let mut rows = BTreeMap::<_, (u64, u64, Decimal, Decimal)>::new();
        for (client, PricedRecord { record, charge }) in &self.records {
            let wanted = (query.from_ns()..query.until_ns()).contains(&record.time_ns)
                && query.tenant.as_deref().is_none_or(|only| only == &*record.tenant)
                && query.meter.as_deref().is_none_or(|only| only == &*record.meter)
                && query.client.as_deref().is_none_or(|only| only == client);
            if wanted {
                let by = |kinds: &[UsageBy], name: &str| {
                    kinds.contains(&query.by).then(|| name.to_owned())
                };
                let names = [
                    by(&[UsageBy::Tenant, UsageBy::Both], &record.tenant),
                    by(&[UsageBy::Meter, UsageBy::Both], &record.meter),
                    by(&[UsageBy::Client], client),
                ];
                let row = rows.entry((names, charge.currency.to_string())).or_default();
                row.0 += 1;
                row.1 += u64::from(charge.fallback.is_some());
                row.2 += record.quantity;
                row.3 += charge.amount;
            }
        }
        let row = |((names, currency), (records, fallbacks, quantity, amount)): (_, _)| {
            let names: Names = names;
            let quantity = names[1].is_some().then_some(quantity);
            (names, currency, records, fallbacks, quantity, amount)
        };
        rows.into_iter().map(row).collect()
    }
}

async fn asked(store: &impl Store, query: &UsageQuery) -> Vec<Row> {
    let rows = store.usage(query).await.unwrap();
    // The same in pages, of which none is longer than asked for.
    for limit in [1, 3] {
        let (mut paged, mut query) = (Vec::new(), query.clone().page(None, limit));
        loop {
            let page = store.usage_page(&query).await.unwrap();
            assert!(page.rows.len() <= limit);
            paged.extend(page.rows);
            match page.next {
                Some(next) => query.after = Some(next),
                None => break,
            }
        }
        assert_eq!(paged, rows, "in pages of {limit}");
    }
    let rows = rows.into_iter().map(|row| {
        let (names, currency) = ([row.tenant, row.meter, row.client], row.currency.to_string());
        (names, currency, row.records, row.fallbacks, row.quantity, row.amount)
    });
    rows.collect()
}

/// Runs histories on stores in one place, one after the other, all of them deleted at the end of each.
pub async fn check(place: &Place) {
    let mut runner = TestRunner::deterministic();
    let histories = prop::collection::vec(any_step(), 1..40);
    for _ in 0..HISTORIES {
        let steps = histories.new_tree(&mut runner).unwrap().current();
        replay(place, &steps).await;
    }
}

async fn replay(place: &Place, steps: &[Step]) {
    let (mut store, mut model) = (place.open().await, Model::default());
    for step in steps {
        match step {
            Step::Append(batches) => {
                let expected: Vec<_> = batches.iter().map(|batch| model.append(batch)).collect();
                assert_eq!(store.append(batches.clone()).await.unwrap(), expected, "{steps:#?}");
            }
            Step::Reopen => {
                store.close().await;
                store = place.open().await;
            }
            Step::Ask(query) => {
                let rows = asked(&store, query).await;
                assert_eq!(rows, model.usage(query), "{query:?} {steps:#?}");
            }
        }
    }
    for by in ALL_BY {
        assert_eq!(asked(&store, &all(by)).await, model.usage(&all(by)), "{steps:#?}");
    }
    let mut records: Vec<_> = model.records.into_iter().map(|(_, priced)| priced).collect();
    sort(&mut records);
    assert_eq!(scan(&store, i64::MIN, i64::MAX).await, records, "{steps:#?}");
    // The next history begins with nothing.
    store.retain(i64::MAX).await.unwrap();
    store.close().await;
}
