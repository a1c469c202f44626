use super::sum::Sum;
use std::collections::HashMap;
use std::sync::Arc;
use tidegate_core::usage::{Currency, PricedRecord};

/// Nanoseconds of a minute: stores keep sums by the minute.
pub(crate) const MINUTE_NS: i64 = 60_000_000_000;

/// Key of a sum.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TallyKey {
    pub(crate) tenant: Arc<str>,
    pub(crate) meter: Arc<str>,
    /// When the minute begins.
    pub(crate) minute_ns: i64,
    pub(crate) currency: Currency,
    /// The client whose token delivered the records; empty without one.
    pub(crate) client: Arc<str>,
}

/// Records summed up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) records: u64,
    pub(crate) fallbacks: u64,
    pub(crate) quantity: Sum,
    pub(crate) amount: Sum,
}

/// Records summed up by the minute.
#[derive(Debug, Default)]
pub(crate) struct Tallies {
    by_key: HashMap<TallyKey, Tally>,
}

/// The last whole span that begins at or before a time.
pub(crate) fn floor(ns: i64, span_ns: i64) -> i64 {
    ns.div_euclid(span_ns).saturating_mul(span_ns)
}

// === impl TallyKey ===

impl TallyKey {
    pub(crate) fn series(&self) -> (Arc<str>, Arc<str>) {
        (Arc::clone(&self.tenant), Arc::clone(&self.meter))
    }
}

// === impl Tally ===

impl Tally {
    pub(crate) fn count(&mut self, priced: &PricedRecord) {
        self.records += 1;
        self.fallbacks += u64::from(priced.charge.fallback.is_some());
        self.quantity += Sum::from(priced.record.quantity);
        self.amount += Sum::from(priced.charge.amount);
    }

    /// True if a sum is beyond what a decimal number holds.
    pub(crate) fn overflows(&self) -> bool {
        self.quantity.overflows() || self.amount.overflows()
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.records += other.records;
        self.fallbacks += other.fallbacks;
        self.quantity += other.quantity;
        self.amount += other.amount;
    }
}

// === impl Tallies ===

impl Tallies {
    pub(crate) fn count(&mut self, client: &Arc<str>, priced: &PricedRecord) {
        let key = TallyKey {
            tenant: priced.record.tenant.clone(),
            meter: priced.record.meter.clone(),
            minute_ns: floor(priced.record.time_ns, MINUTE_NS),
            currency: priced.charge.currency,
            client: Arc::clone(client),
        };
        self.by_key.entry(key).or_default().count(priced);
    }

    pub(crate) fn retain(&mut self, wanted: impl Fn(&TallyKey) -> bool) {
        self.by_key.retain(|key, _| wanted(key));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&TallyKey, &Tally)> {
        self.by_key.iter()
    }
}

impl IntoIterator for Tallies {
    type Item = (TallyKey, Tally);
    type IntoIter = std::collections::hash_map::IntoIter<TallyKey, Tally>;

    fn into_iter(self) -> Self::IntoIter {
        self.by_key.into_iter()
    }
}
