use super::accounts::{ACCOUNT_KEYS_DEFAULT, AccountCache, AccountCacheStats, Sum};
use super::calendar::Segment;
use super::tariff_set::{Tariffs, TierKey};
use crate::usage::{PricedRecord, UsageRecord};
use rust_decimal::Decimal;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Prices records by tariffs, and tracks the usage of each period.
///
/// For each batch, in this order:
///
/// 1. [`begin_batch`](Self::begin_batch) returns the number of the batch;
/// 2. [`missing`](Self::missing) returns the unknown sums: read them from the store and [`load`](Self::load) them;
/// 3. [`price`](Self::price) each record;
/// 4. once batches are durable, [`evict`](Self::evict) up to their number, between two batches and not between
///    `missing` and `price`.
///
/// A sum is evicted only after every batch that changed it is durable, so the store's value is complete. A record
/// that was stored before is subtracted again by [`uncount`](Self::uncount).
///
/// # Capacity
///
/// The capacity counts keys: sums, and accounts without one. Beyond it the least recently used keys are evicted,
/// an eighth more than necessary. Keys that are not durable yet stay, so the cache exceeds its capacity by at most
/// one key per period of records on their way to the store; the windows of the later stages bound those.
/// [`AccountCacheStats::over_capacity`] reports the excess.
///
/// ```
/// use std::sync::Arc;
/// use tidegate_core::tariff::{Evaluator, FallbackSpec, PriceSpec, TariffSpec, Tariffs, Tenants};
/// use tidegate_core::usage::{Currency, UsageRecord};
///
/// let tariff = TariffSpec {
///     name: "tokens".to_owned(),
///     tenants: Tenants::All,
///     meter: "tokens.*".to_owned(),
///     currency: Currency::USD,
///     per: 1_000_000,
///     time_zone: "UTC".to_owned(),
///     effective_from: None,
///     effective_until: None,
///     price: Some(PriceSpec::Flat("0.15".parse()?)),
///     windows: Vec::new(),
///     period: None,
/// };
/// let tariffs = Tariffs::new(vec![tariff], FallbackSpec::default()).map_err(|all| all[0].clone())?;
/// let mut evaluator = Evaluator::new(Arc::new(tariffs));
/// evaluator.begin_batch();
/// let priced = evaluator.price(UsageRecord {
///     tenant: "acme".into(),
///     meter: "tokens.output".into(),
///     quantity: 2_000.into(),
///     time_ns: 0,
///     labels: "".into(),
/// });
/// assert_eq!(priced.charge.amount, "0.0003".parse()?);
/// assert_eq!(priced.charge.fallback, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Evaluator {
    tariffs: Arc<Tariffs>,
    /// Generation of the tariffs; accounts of another generation resolve their prices again.
    generation: u32,
    cache: AccountCache,
    batch: u64,
    unloaded: u64,
}

// === impl Evaluator ===

impl Evaluator {
    /// Creates an evaluator with a capacity of [`ACCOUNT_KEYS_DEFAULT`] keys.
    #[must_use]
    pub fn new(tariffs: Arc<Tariffs>) -> Self {
        Self::with_capacity(tariffs, ACCOUNT_KEYS_DEFAULT)
    }

    /// Creates an evaluator with a capacity of `keys`, at least one.
    #[must_use]
    pub fn with_capacity(tariffs: Arc<Tariffs>, keys: usize) -> Self {
        Self { tariffs, generation: 1, cache: AccountCache::new(keys), batch: 0, unloaded: 0 }
    }

    /// Tariffs in force.
    #[must_use]
    pub fn tariffs(&self) -> &Arc<Tariffs> {
        &self.tariffs
    }

    /// Replaces the tariffs. The known usage stays.
    ///
    /// A meter without tiers was not counted: its sum is loaded from the store when the new tariffs need it, and
    /// lacks the records on their way there. If that matters, replace tariffs while no records are in flight.
    pub fn replace(&mut self, tariffs: Arc<Tariffs>) {
        self.tariffs = tariffs;
        self.generation = self.generation.wrapping_add(1);
    }

    /// Starts a new batch, and returns its number: 1, 2, 3 …
    pub fn begin_batch(&mut self) -> u64 {
        self.batch += 1;
        self.batch
    }

    /// Sums that must be loaded before these records can be priced, each once and in order. Usually none.
    #[must_use]
    pub fn missing(&self, records: &[UsageRecord]) -> Vec<TierKey> {
        let mut missing = BTreeSet::new();
        if !self.tariffs.have_tiers() {
            return Vec::new();
        }
        for record in records {
            let account = self.cache.get(&record.tenant, &record.meter);
            if account.is_some_and(|known| known.remembers(self.generation, record.time_ns)) {
                continue;
            }
            let fresh;
            let candidates = match account.and_then(|known| known.candidates(self.generation)) {
                Some(candidates) => candidates,
                None => {
                    fresh = self.tariffs.candidates(&record.tenant, &record.meter);
                    &fresh
                }
            };
            self.tariffs.periods(candidates, record.time_ns, |_, period| {
                if !account.is_some_and(|known| known.sums.has(period)) {
                    missing.insert(key(record, period));
                }
            });
        }
        missing.into_iter().collect()
    }

    /// Loads a sum from the store. A known sum stays: it includes records not stored yet.
    pub fn load(&mut self, key: &TierKey, used: Decimal) {
        let period = Segment { from_ns: key.from_ns, until_ns: key.until_ns };
        // The sum is for the current batch or the next: it must stay until that is durable.
        let sum = Sum { period, used, touched: self.batch + 1 };
        self.cache.with(&key.tenant, &key.meter, |account| {
            account.touched = account.touched.max(sum.touched);
            account.add(sum);
        });
    }

    /// Prices a record, and counts it for the tiers of later ones.
    ///
    /// A sum that was not [loaded](Self::load) starts at zero; [`AccountCacheStats::unloaded`] counts those.
    pub fn price(&mut self, record: UsageRecord) -> PricedRecord {
        let Self { tariffs, generation, cache, batch, unloaded } = self;
        // No record is of batch 0, which would count as durable from the start.
        let batch = (*batch).max(1);
        let charge = cache.with(&record.tenant, &record.meter, |account| {
            if !account.remembers(*generation, record.time_ns) {
                let added = account.resolve(tariffs, (*generation, batch), record.time_ns);
                *unloaded += added as u64;
            }
            account.charge(tariffs, (record.quantity, record.time_ns), batch)
        });
        PricedRecord { record, charge }
    }

    /// Subtracts a record that the store had already, so that it counts once.
    pub fn uncount(&mut self, record: &UsageRecord) {
        self.cache.with_known(&record.tenant, &record.meter, |account| {
            account.uncount(record.quantity, record.time_ns);
        });
    }

    /// Evicts keys beyond the capacity that no batch after `durable_through` has changed. Returns their number.
    pub fn evict(&mut self, durable_through: u64) -> usize {
        self.cache.evict(durable_through)
    }

    /// Fill of the account cache.
    #[must_use]
    pub fn stats(&self) -> AccountCacheStats {
        AccountCacheStats { unloaded: self.unloaded, ..self.cache.stats() }
    }
}

fn key(record: &UsageRecord, period: Segment) -> TierKey {
    TierKey {
        tenant: Arc::clone(&record.tenant),
        meter: Arc::clone(&record.meter),
        from_ns: period.from_ns,
        until_ns: period.until_ns,
    }
}
