use super::tally::{Tally, TallyKey, floor};
use super::{BatchRefusal, PricedBatch};
use rust_decimal::Decimal;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tidegate_core::usage::PricedRecord;

/// Nanoseconds of a day (UTC).
const DAY_NS: i64 = 86_400_000_000_000;

/// Quantities and amounts from here on are checked. Of smaller ones it takes 7.9e13 in one day to leave the range
/// of a decimal number: 900 million a second.
const LARGE: Decimal = Decimal::from_parts(0xa4c6_8000, 0x0003_8d7e, 0, false, 0);

/// Sums by the day of the tenants and meters that have large records: no batch may bring one out of the range of a
/// decimal number.
#[derive(Debug, Default)]
pub(crate) struct DaySums {
    by_key: HashMap<TallyKey, Tally>,
}

/// True if a record alone is a notable part of the largest sum.
pub(crate) fn is_large(priced: &PricedRecord) -> bool {
    priced.record.quantity.abs() >= LARGE || priced.charge.amount.abs() >= LARGE
}

/// Keys of the sums that must be known to check batches, each with the start of its day. Usually none.
pub(crate) fn large_keys<'a>(
    batches: impl IntoIterator<Item = &'a PricedBatch>,
) -> HashSet<TallyKey> {
    let records = batches.into_iter().flat_map(|batch| &batch.records);
    records.filter(|priced| is_large(priced)).map(day_key).collect()
}

fn day_key(priced: &PricedRecord) -> TallyKey {
    TallyKey {
        tenant: priced.record.tenant.clone(),
        meter: priced.record.meter.clone(),
        minute_ns: floor(priced.record.time_ns, DAY_NS),
        currency: priced.charge.currency,
        // The sum of all clients is checked.
        client: Arc::default(),
    }
}

// === impl DaySums ===

impl DaySums {
    /// The stored sums of [`large_keys`].
    pub(crate) fn new(stored: impl IntoIterator<Item = (TallyKey, Tally)>) -> Self {
        Self { by_key: stored.into_iter().collect() }
    }

    /// Times that a key's day covers.
    pub(crate) fn day(key: &TallyKey) -> std::ops::Range<i64> {
        key.minute_ns..key.minute_ns.saturating_add(DAY_NS)
    }

    /// Adds a batch, or refuses it as a whole.
    pub(crate) fn add(&mut self, batch: &PricedBatch) -> Result<(), BatchRefusal> {
        if self.by_key.is_empty() {
            return Ok(());
        }
        let mut changed = HashMap::<TallyKey, Tally>::new();
        for priced in &batch.records {
            let key = day_key(priced);
            if let Some(stored) = self.by_key.get(&key) {
                changed.entry(key).or_insert(*stored).count(priced);
            }
        }
        if changed.values().any(Tally::overflows) {
            return Err(BatchRefusal::SumOverflow);
        }
        self.by_key.extend(changed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_is_from_1e15_on() {
        assert_eq!(LARGE, Decimal::from(1_000_000_000_000_000_u64));
    }
}
