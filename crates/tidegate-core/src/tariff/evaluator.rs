use super::book::{BOOK_KEYS_DEFAULT, Book};
use super::segment::Segment;
use super::sums::Sum;
use super::{BookStats, Tariffs, TierKey};
use crate::usage::{PricedRecord, UsageRecord};
use rust_decimal::Decimal;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Prices records by tariffs, and keeps how much of each period is used.
///
/// For each batch, in this order:
///
/// 1. [`begin_batch`](Self::begin_batch) gives the batch its number;
/// 2. [`missing`](Self::missing) names the sums that are not known: read them from the store and
///    [`load`](Self::load) them;
/// 3. [`price`](Self::price) each record;
/// 4. when batches have become durable, [`evict`](Self::evict) with the number up to which all are: between two
///    batches, not between asking what is missing and pricing.
///
/// A sum is dropped only after every batch that changed it is durable, so what the store says of it later is
/// complete. A record that turns out to have been stored before is taken out again by [`uncount`](Self::uncount).
///
/// # Capacity
///
/// There is room for a number of keys: sums, and tenants' meters that need none. When it is exceeded, what was
/// used longest ago goes, an eighth more than needed. What is not durable yet stays whatever the capacity, so the
/// book is larger by at most one key for each period that records on their way to the store fall into; the
/// windows of the stages behind bound those. [`BookStats::over_capacity`] tells.
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
    /// Which set of tariffs this is; accounts that know another learn anew.
    generation: u32,
    book: Book,
    batch: u64,
    unloaded: u64,
}

// === impl Evaluator ===

impl Evaluator {
    /// With room for [`BOOK_KEYS_DEFAULT`] keys.
    #[must_use]
    pub fn new(tariffs: Arc<Tariffs>) -> Self {
        Self::with_capacity(tariffs, BOOK_KEYS_DEFAULT)
    }

    /// With room for so many keys, at least one.
    #[must_use]
    pub fn with_capacity(tariffs: Arc<Tariffs>, keys: usize) -> Self {
        Self { tariffs, generation: 1, book: Book::new(keys), batch: 0, unloaded: 0 }
    }

    /// The tariffs that it prices by.
    #[must_use]
    pub fn tariffs(&self) -> &Arc<Tariffs> {
        &self.tariffs
    }

    /// Prices by other tariffs from now on. What was used stays known.
    ///
    /// A meter that had no tiers was not counted: its sum is loaded from the store when the new tariffs need it,
    /// and lacks what is on its way there. Replace tariffs when nothing is, if that matters.
    pub fn replace(&mut self, tariffs: Arc<Tariffs>) {
        self.tariffs = tariffs;
        self.generation = self.generation.wrapping_add(1);
    }

    /// All records from now on are of a new batch. Returns its number: 1, 2, 3 …
    pub fn begin_batch(&mut self) -> u64 {
        self.batch += 1;
        self.batch
    }

    /// The sums that must be loaded before these records can be priced, each once and in order. Most often none.
    #[must_use]
    pub fn missing(&self, records: &[UsageRecord]) -> Vec<TierKey> {
        let mut missing = BTreeSet::new();
        if !self.tariffs.have_tiers() {
            return Vec::new();
        }
        for record in records {
            let account = self.book.get(&record.tenant, &record.meter);
            if account.is_some_and(|known| known.remembers(self.generation, record.time_ns)) {
                continue;
            }
            let fresh;
            let lane = match account.and_then(|known| known.lane(self.generation)) {
                Some(lane) => lane,
                None => {
                    fresh = self.tariffs.lane(&record.tenant, &record.meter);
                    &fresh
                }
            };
            self.tariffs.periods(lane, record.time_ns, |_, period| {
                if !account.is_some_and(|known| known.sums.has(period)) {
                    missing.insert(key(record, period));
                }
            });
        }
        missing.into_iter().collect()
    }

    /// What the store says was used. A sum that is known already stays: it has what is not stored yet.
    pub fn load(&mut self, key: &TierKey, used: Decimal) {
        let period = Segment { from_ns: key.from_ns, until_ns: key.until_ns };
        // It is for the batch at hand or the one after: until that is durable it must not go.
        let sum = Sum { period, used, touched: self.batch + 1 };
        self.book.with(&key.tenant, &key.meter, |account| {
            account.touched = account.touched.max(sum.touched);
            account.add(sum);
        });
    }

    /// What a record costs. It is counted for the tiers of those that come after it.
    ///
    /// A sum that was not [loaded](Self::load) begins at zero; [`BookStats::unloaded`] counts those.
    pub fn price(&mut self, record: UsageRecord) -> PricedRecord {
        let Self { tariffs, generation, book, batch, unloaded } = self;
        // Nothing is of batch 0: that would be durable from the start.
        let batch = (*batch).max(1);
        let charge = book.with(&record.tenant, &record.meter, |account| {
            if !account.remembers(*generation, record.time_ns) {
                let added = account.learn(tariffs, (*generation, batch), record.time_ns);
                *unloaded += added as u64;
            }
            account.charge(tariffs, (record.quantity, record.time_ns), batch)
        });
        PricedRecord { record, charge }
    }

    /// Takes a record out of the sums again: the store says that it was stored before, so it counts once.
    pub fn uncount(&mut self, record: &UsageRecord) {
        self.book.with_known(&record.tenant, &record.meter, |account| {
            account.uncount(record.quantity, record.time_ns);
        });
    }

    /// All batches up to this number are durable. When there are more keys than the capacity, drops some of
    /// those that no later batch has changed. Returns how many.
    pub fn evict(&mut self, durable_through: u64) -> usize {
        self.book.evict(durable_through)
    }

    /// How full its book is.
    #[must_use]
    pub fn stats(&self) -> BookStats {
        BookStats { unloaded: self.unloaded, ..self.book.stats() }
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
