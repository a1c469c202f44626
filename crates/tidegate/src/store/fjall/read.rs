use super::block;
use super::engine::{Engine, UsageView};
use super::key::{self, Part};
use crate::store::scan::RecordsSender;
use crate::store::tally::{Tally, TallyKey};
use crate::store::{StoreError, UsageBy, UsageQuery, UsageRow};
use fjall::{Readable as _, Snapshot};
use rust_decimal::Decimal;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidegate_core::sequence::SeqWindow;
use tidegate_core::usage::{Currency, PricedRecord};

/// Longest duration of a query over very many tenants and meters.
const QUERY_MAX: Duration = Duration::from_secs(30);

/// A tenant and a meter that have sums.
pub(super) struct Pair {
    /// Key prefix of their sums.
    pub(super) prefix: Vec<u8>,
    tenant: String,
    meter: String,
}

/// Sums by what a query asks for.
#[derive(Default)]
struct Table {
    rows: BTreeMap<(Option<String>, Option<String>, Currency), Tally>,
}

/// One state of the store: what the engine has summed up, and what is not in there yet.
struct Moment {
    engine: Arc<Engine>,
    snapshot: Snapshot,
    recent: Vec<(TallyKey, Tally)>,
}

/// Which batches of a sender are stored.
pub(super) fn window(engine: &Engine, sender: &str) -> Result<SeqWindow, StoreError> {
    let value = engine.senders.get(key::sender(sender)).map_err(|error| engine.trouble(&error))?;
    let Some(value) = value else { return Ok(SeqWindow::default()) };
    let window = value.get(8..).and_then(|bytes| SeqWindow::from_bytes(bytes).ok());
    window.ok_or_else(|| engine.damaged("a sender's numbers"))
}

/// The first tenant and meter at or after a key.
pub(super) fn next_pair(engine: &Engine, from: &[u8]) -> Result<Option<Pair>, StoreError> {
    match engine.sums.range(from..).next() {
        Some(row) => {
            let key = row.key().map_err(|error| engine.trouble(&error))?;
            Pair::of(&key).map(Some).ok_or_else(|| engine.damaged("a sum's key"))
        }
        None => Ok(None),
    }
}

pub(super) fn used(
    view: &UsageView,
    tenant: &str,
    meter: &str,
    from_ns: i64,
    until_ns: i64,
) -> Result<Decimal, StoreError> {
    let wanted = |key: &TallyKey| {
        &*key.tenant == tenant
            && &*key.meter == meter
            && (from_ns..until_ns).contains(&key.minute_ns)
    };
    let moment = Moment::now(view, wanted)?;
    let mut all = Tally::default();
    let prefix = key::pair(tenant, meter);
    moment.stored(&prefix, &key::parts(from_ns, until_ns), |_, tally| all.add(tally))?;
    moment.recent.iter().for_each(|(_, tally)| all.add(tally));
    Ok(all.quantity.to_decimal())
}

pub(super) fn usage(view: &UsageView, query: &UsageQuery) -> Result<Vec<UsageRow>, StoreError> {
    let (from_ns, until_ns) = (query.from_ns(), query.until_ns());
    let named = |tenant: &str, meter: &str| {
        query.tenant.as_deref().is_none_or(|only| only == tenant)
            && query.meter.as_deref().is_none_or(|only| only == meter)
    };
    let moment = Moment::now(view, |key| {
        (from_ns..until_ns).contains(&key.minute_ns) && named(&key.tenant, &key.meter)
    })?;
    let mut table = Table::default();
    for (key, tally) in &moment.recent {
        table.add(query.by, &key.tenant, &key.meter, key.currency, tally);
    }
    let parts = key::parts(from_ns, until_ns);
    let started = Instant::now();
    let mut from = query.tenant.as_deref().map(key::tenant).unwrap_or_default();
    while let Some(pair) = moment.next_pair(&from)? {
        if query.tenant.as_deref().is_some_and(|only| only != pair.tenant) {
            break;
        }
        if named(&pair.tenant, &pair.meter) {
            moment.stored(&pair.prefix, &parts, |currency, tally| {
                table.add(query.by, &pair.tenant, &pair.meter, currency, tally);
            })?;
        }
        from = pair.after();
        if started.elapsed() > QUERY_MAX {
            let why = "the sum is not there within 30 s: ask for one tenant, or for less time";
            return Err(StoreError::Unavailable(why.to_owned()));
        }
    }
    Ok(table.into_rows())
}

/// Sends the records of a time, block by block, until all are sent or nobody takes them.
pub(super) fn scan(view: &UsageView, from_ns: i64, until_ns: i64, to: &RecordsSender) {
    let (rows, damaged) = match view.read().engine() {
        Ok(engine) => {
            // No block is longer than a day, so none that ends later has anything of this time.
            let end_ns = until_ns.saturating_add(key::DAY_NS);
            let rows = engine.blocks.range(key::block(from_ns, 0)..=key::block(end_ns, u64::MAX));
            (rows, engine.damaged("a block"))
        }
        Err(error) => {
            let _ = to.blocking_send(Err(error));
            return;
        }
    };
    let wanted = |priced: &PricedRecord| (from_ns..until_ns).contains(&priced.record.time_ns);
    for row in rows {
        let read = row.value().map_err(|error| StoreError::Unavailable(error.to_string()));
        let block = read.and_then(|bytes| block::decode(&bytes).map_err(|_| damaged.clone()));
        let block = block.map(|mut records| {
            records.retain(wanted);
            records
        });
        let (empty, failed) = (block.as_ref().is_ok_and(Vec::is_empty), block.is_err());
        if !empty && to.blocking_send(block).is_err() || failed {
            return;
        }
    }
}

// === impl Pair ===

impl Pair {
    fn of(key: &[u8]) -> Option<Self> {
        let (length, tenant, meter) = key::split_pair(key)?;
        Some(Self { prefix: key[..length].to_vec(), tenant, meter })
    }

    /// Where the next pair's keys begin: names are ended by a 0, which no name holds.
    pub(super) fn after(&self) -> Vec<u8> {
        let mut after = self.prefix.clone();
        if let Some(last) = after.last_mut() {
            *last = 1;
        }
        after
    }
}

// === impl Moment ===

impl Moment {
    fn now(view: &UsageView, wanted: impl Fn(&TallyKey) -> bool) -> Result<Self, StoreError> {
        let inside = view.read();
        let engine = inside.engine()?;
        let recent = inside.summary.iter().filter(|(key, _)| wanted(key));
        let recent = recent.map(|(key, tally)| (key.clone(), *tally)).collect();
        let snapshot = engine.db.snapshot();
        Ok(Self { engine, snapshot, recent })
    }

    fn next_pair(&self, from: &[u8]) -> Result<Option<Pair>, StoreError> {
        match self.snapshot.range(&self.engine.sums, from..).next() {
            Some(row) => {
                let key = row.key().map_err(|error| self.engine.trouble(&error))?;
                Pair::of(&key).map(Some).ok_or_else(|| self.engine.damaged("a sum's key"))
            }
            None => Ok(None),
        }
    }

    fn stored(
        &self,
        prefix: &[u8],
        parts: &[Part],
        mut each: impl FnMut(Currency, &Tally),
    ) -> Result<(), StoreError> {
        for part in parts {
            let from = part.level.start(prefix, part.from_ns);
            let until = part.level.start(prefix, part.until_ns);
            for row in self.snapshot.range(&self.engine.sums, from..until) {
                let (key, value) = row.into_inner().map_err(|error| self.engine.trouble(&error))?;
                let sum = key::currency(&key).zip(key::decode_tally(&value));
                let (currency, tally) = sum.ok_or_else(|| self.engine.damaged("a sum"))?;
                each(currency, &tally);
            }
        }
        Ok(())
    }
}

// === impl Table ===

impl Table {
    fn add(&mut self, by: UsageBy, tenant: &str, meter: &str, currency: Currency, tally: &Tally) {
        let key = match by {
            UsageBy::Tenant => (Some(tenant.to_owned()), None, currency),
            UsageBy::Meter => (None, Some(meter.to_owned()), currency),
            UsageBy::Both => (Some(tenant.to_owned()), Some(meter.to_owned()), currency),
        };
        self.rows.entry(key).or_default().add(tally);
    }

    fn into_rows(self) -> Vec<UsageRow> {
        let row = |((tenant, meter, currency), tally): (_, Tally)| {
            UsageRow::of(tenant, meter, currency, &tally)
        };
        self.rows.into_iter().map(row).collect()
    }
}
