use rust_decimal::Decimal;
use std::sync::Arc;
use tidegate::store::{Appended, Origin, PricedBatch, Store, UsageBy, UsageQuery, UsageRow};
use tidegate::usage::{Currency, Fallback, PricedRecord, UsageCharge, UsageRecord};

pub const MINUTE_NS: i64 = 60_000_000_000;

/// A Tuesday in November 2023, in the middle of a minute.
pub const NOW_NS: i64 = 1_700_000_000_123_456_789;

pub fn number(text: &str) -> Decimal {
    text.parse().unwrap()
}

pub fn record(tenant: &str, meter: &str, quantity: &str, amount: &str) -> PricedRecord {
    PricedRecord {
        record: UsageRecord {
            tenant: Arc::from(tenant),
            meter: Arc::from(meter),
            quantity: number(quantity),
            time_ns: NOW_NS,
            labels: Arc::from("region=eu"),
        },
        charge: UsageCharge {
            amount: number(amount),
            currency: Currency::USD,
            tariff: Arc::from("standard"),
            fallback: None,
        },
    }
}

pub fn at(mut priced: PricedRecord, time_ns: i64) -> PricedRecord {
    priced.record.time_ns = time_ns;
    priced
}

pub fn fallen_back(mut priced: PricedRecord) -> PricedRecord {
    priced.charge.fallback = Some(Fallback::UnknownMeter);
    priced
}

pub fn batch(sender: &str, seq: u64, records: Vec<PricedRecord>) -> PricedBatch {
    settling(sender, seq, 0, records)
}

pub fn settling(sender: &str, seq: u64, settled: u64, records: Vec<PricedRecord>) -> PricedBatch {
    PricedBatch {
        origin: Some(Origin { sender: Arc::from(sender), owner: None, seq, settled }),
        source: Arc::from(sender),
        records,
    }
}

/// One record a batch, of a client: `""` for a sender without a token.
pub fn owned(sender: &str, owner: &str, seq: u64) -> PricedBatch {
    let mut batch = one(sender, seq);
    if let Some(origin) = &mut batch.origin {
        origin.owner = Some(Arc::from(owner));
    }
    batch
}

/// One record a batch.
pub fn one(sender: &str, seq: u64) -> PricedBatch {
    batch(sender, seq, vec![record("acme", "tokens", "1", "0.5")])
}

pub async fn append(store: &impl Store, batches: Vec<PricedBatch>) -> Vec<Appended> {
    store.append(batches).await.unwrap()
}

pub fn all(by: UsageBy) -> UsageQuery {
    UsageQuery::new(by, i64::MIN, i64::MAX)
}

pub async fn usage(store: &impl Store, query: &UsageQuery) -> Vec<UsageRow> {
    store.usage(query).await.unwrap()
}

/// How many records all sums together have, and how many are stored as they came: always the same.
pub async fn count(store: &impl Store) -> u64 {
    let summed = usage(store, &all(UsageBy::Both)).await.iter().map(|row| row.records).sum();
    assert_eq!(scan_as_it_comes(store, i64::MIN, i64::MAX).await.len() as u64, summed);
    summed
}

/// The records of a time, in an order that does not depend on the store.
pub async fn scan(store: &impl Store, from_ns: i64, until_ns: i64) -> Vec<PricedRecord> {
    let mut found = scan_as_it_comes(store, from_ns, until_ns).await;
    sort(&mut found);
    found
}

async fn scan_as_it_comes(store: &impl Store, from_ns: i64, until_ns: i64) -> Vec<PricedRecord> {
    let mut blocks = store.scan(from_ns, until_ns);
    let mut found = Vec::new();
    while let Some(block) = blocks.next().await {
        found.extend(block.unwrap());
    }
    found
}

pub fn sort(records: &mut [PricedRecord]) {
    records.sort_by_cached_key(|priced| format!("{:020} {priced:?}", priced.record.time_ns));
}
