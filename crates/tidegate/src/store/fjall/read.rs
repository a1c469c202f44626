use super::block;
use super::engine::{Engine, UsageView};
use super::key::{self, Level, Part};
use super::totals::{BY_CLIENT, BY_METER};
use crate::store::day_sums::DaySums;
use crate::store::decide::StoredSender;
use crate::store::scan::RecordsSender;
use crate::store::tally::{Tally, TallyKey};
use crate::store::{StoreError, UsageBy, UsageCursor, UsagePage, UsageQuery, UsageRow};
use fjall::{Keyspace, Readable as _, Snapshot};
use rust_decimal::Decimal;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidegate_core::usage::{Currency, PricedRecord};

/// Longest duration of a query over very many tenants and meters.
const QUERY_MAX: Duration = Duration::from_secs(30);

/// Time after which a page ends early, if it can.
const PAGE_TIME: Duration = Duration::from_secs(3);

/// A tenant and a meter that have sums.
pub(super) struct Pair {
    /// Key prefix of their sums. That of totals has by what they are in the place of the tenant.
    pub(super) prefix: Vec<u8>,
    tenant: String,
    meter: String,
}

/// Sums by what a query asks for: those of a page, and none beyond it.
struct Table {
    by: UsageBy,
    totals: Option<&'static str>,
    /// True if pairs come in the order of their second names alone: totals, or those of one tenant.
    by_second: bool,
    after: Option<RowKey>,
    limit: usize,
    has_more: bool,
    rows: BTreeMap<RowKey, Tally>,
}

/// Tenant, meter and client of rows that come together.
type Group = (Option<String>, Option<String>, Option<String>);

/// Tenant, meter, client and currency of a row.
type RowKey = (Option<String>, Option<String>, Option<String>, Currency);

/// One state of the store: what the engine has summed up, and what is not in there yet.
struct Moment {
    engine: Arc<Engine>,
    snapshot: Snapshot,
    /// By what the totals are that it reads in the place of the sums of tenants.
    totals: Option<&'static str>,
    recent: Vec<(TallyKey, Tally)>,
}

/// Which batches of a sender are stored, and whose name it is.
pub(super) fn sender(engine: &Engine, sender: &str) -> Result<StoredSender, StoreError> {
    let value = engine.senders.get(key::sender(sender)).map_err(|error| engine.trouble(&error))?;
    let Some(value) = value else { return Ok(StoredSender::default()) };
    key::decode_sender(&value).ok_or_else(|| engine.damaged("a sender's numbers"))
}

/// The sums of these keys' days, as far as they are known to the writer.
pub(super) fn day_sums(
    engine: &Engine,
    view: &UsageView,
    keys: HashSet<TallyKey>,
) -> Result<DaySums, StoreError> {
    let mut stored = Vec::with_capacity(keys.len());
    for key in keys {
        let mut tally = Tally::default();
        // One row for each client.
        for row in engine.sums.prefix(key::sum(&key, Level::Day)) {
            let row = row.value().map_err(|error| engine.trouble(&error))?;
            tally.add(&key::decode_tally(&row).ok_or_else(|| engine.damaged("a sum"))?);
        }
        let is_same = |it: &TallyKey| {
            (&it.tenant, &it.meter, it.currency) == (&key.tenant, &key.meter, key.currency)
        };
        let inside = view.read();
        let recent = inside.summary.iter();
        let recent = recent.filter(|(it, _)| DaySums::day(&key).contains(&it.minute_ns));
        recent.filter(|(it, _)| is_same(it)).for_each(|(_, recent)| tally.add(recent));
        drop(inside);
        stored.push((key, tally));
    }
    Ok(DaySums::new(stored))
}

/// The first tenant and meter at or after a key.
pub(super) fn next_pair(
    engine: &Engine,
    sums: &Keyspace,
    from: &[u8],
) -> Result<Option<Pair>, StoreError> {
    match sums.range(from..).next() {
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
    moment.stored(&prefix, &key::parts(from_ns, until_ns), |_, _, tally| all.add(tally))?;
    moment.recent.iter().for_each(|(_, tally)| all.add(tally));
    Ok(all.quantity.to_decimal())
}

pub(super) fn usage(view: &UsageView, query: &UsageQuery) -> Result<UsagePage, StoreError> {
    let (from_ns, until_ns) = (query.from_ns(), query.until_ns());
    let named = |tenant: &str, meter: &str| {
        query.tenant.as_deref().is_none_or(|only| only == tenant)
            && query.meter.as_deref().is_none_or(|only| only == meter)
    };
    let of_client = |client: &str| query.client.as_deref().is_none_or(|only| only == client);
    let mut moment = Moment::now(view, |key| {
        (from_ns..until_ns).contains(&key.minute_ns)
            && named(&key.tenant, &key.meter)
            && of_client(&key.client)
    })?;
    moment.totals = totals(query);
    let mut table = Table::new(query);
    for (key, tally) in &moment.recent {
        table.add((&key.tenant, &key.meter, &key.client), key.currency, tally);
    }
    let parts = key::parts(from_ns, until_ns);
    let started = Instant::now();
    let (mut from, mut last) = (first_key(query), None::<Pair>);
    while let Some(pair) = moment.next_pair(&from)? {
        if moment.totals.or(query.tenant.as_deref()).is_some_and(|only| only != pair.tenant) {
            break;
        }
        let by_client = moment.totals == Some(BY_CLIENT);
        // Other meters follow the one that is asked for.
        if moment.totals == Some(BY_METER)
            && query.meter.as_ref().is_some_and(|it| *it < pair.meter)
        {
            break;
        }
        if table.is_before(&pair) {
            table.has_more = true;
            break;
        }
        // A filter may leave out very many: the page then ends with what was read so far.
        if started.elapsed() > PAGE_TIME
            && let Some(read) = table.group(&pair).and_then(|_| last.take())
            && table.group(&pair) != table.group(&read)
        {
            return Ok(table.into_page_until(&read));
        }
        if by_client || named(&pair.tenant, &pair.meter) {
            moment.stored(&pair.prefix, &parts, |currency, client, tally| {
                let client = if by_client { &pair.meter } else { client };
                if of_client(client) {
                    table.add((&pair.tenant, &pair.meter, client), currency, tally);
                }
            })?;
        }
        from = pair.after();
        last = Some(pair);
        if started.elapsed() > QUERY_MAX {
            let why = "the sum is not there within 30 s: ask for one tenant, or for less time";
            return Err(StoreError::Unavailable(why.to_owned()));
        }
    }
    Ok(table.into_page())
}

/// By what the totals are that a query reads: one that adds up all tenants.
fn totals(query: &UsageQuery) -> Option<&'static str> {
    match query.by {
        _ if query.tenant.is_some() => None,
        UsageBy::Meter => Some(BY_METER),
        // Of a meter, its totals tell the clients.
        UsageBy::Client if query.meter.is_some() => Some(BY_METER),
        UsageBy::Client => Some(BY_CLIENT),
        UsageBy::Tenant | UsageBy::Both => None,
    }
}

/// The key at which the rows of a query begin.
fn first_key(query: &UsageQuery) -> Vec<u8> {
    if let Some(by) = totals(query) {
        let after = query.after.as_ref();
        let after = after.and_then(|after| match query.by {
            UsageBy::Meter => after.meter.as_ref(),
            _ if by == BY_CLIENT => after.client.as_ref(),
            _ => None,
        });
        let first = after.max(query.meter.as_ref()).map(|name| key::pair(by, name));
        return first.unwrap_or_else(|| key::tenant(by));
    }
    let of_tenant = query.tenant.as_deref().map(key::tenant).unwrap_or_default();
    let after = query.after.as_ref().and_then(|after| match (&after.tenant, &after.meter) {
        (Some(tenant), Some(meter)) => Some(key::pair(tenant, meter)),
        (None, Some(meter)) => query.tenant.as_deref().map(|tenant| key::pair(tenant, meter)),
        (Some(tenant), None) => Some(key::tenant(tenant)),
        _ => None,
    });
    of_tenant.max(after.unwrap_or_default())
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
            records.retain(|(_, priced)| wanted(priced));
            records.into_iter().map(|(_, priced)| priced).collect::<Vec<_>>()
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

    pub(super) fn series(&self) -> (Arc<str>, Arc<str>) {
        (Arc::from(&*self.tenant), Arc::from(&*self.meter))
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
        Ok(Self { engine, snapshot, totals: None, recent })
    }

    fn sums(&self) -> &Keyspace {
        if self.totals.is_some() { &self.engine.totals } else { &self.engine.sums }
    }

    fn next_pair(&self, from: &[u8]) -> Result<Option<Pair>, StoreError> {
        match self.snapshot.range(self.sums(), from..).next() {
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
        mut each: impl FnMut(Currency, &str, &Tally),
    ) -> Result<(), StoreError> {
        for part in parts {
            let from = part.level.start(prefix, part.from_ns);
            let until = part.level.start(prefix, part.until_ns);
            for row in self.snapshot.range(self.sums(), from..until) {
                let (key, value) = row.into_inner().map_err(|error| self.engine.trouble(&error))?;
                let sum = key::end(&key, prefix).zip(key::decode_tally(&value));
                let ((currency, client), tally) =
                    sum.ok_or_else(|| self.engine.damaged("a sum"))?;
                each(currency, client, &tally);
            }
        }
        Ok(())
    }
}

// === impl Table ===

impl Table {
    fn new(query: &UsageQuery) -> Self {
        let after = query.after.clone().map(|it| (it.tenant, it.meter, it.client, it.currency));
        let totals = totals(query);
        let by_second = query.tenant.is_some() || totals.is_some();
        let (by, limit, rows) = (query.by, query.limit, BTreeMap::new());
        Self { by, totals, by_second, after, limit, rows, has_more: false }
    }

    /// The part of a row's key that pairs come in the order of; `None` if they come in no order.
    fn group(&self, pair: &Pair) -> Option<Group> {
        let (tenant, second) = (Some(pair.tenant.clone()), Some(pair.meter.clone()));
        match self.by {
            UsageBy::Tenant => Some((tenant, None, None)),
            UsageBy::Both => Some((tenant, second, None)),
            UsageBy::Meter if self.by_second => Some((None, second, None)),
            UsageBy::Client if self.totals == Some(BY_CLIENT) => Some((None, None, second)),
            UsageBy::Meter | UsageBy::Client => None,
        }
    }

    /// True if the page is full, and this pair and all that follow it are beyond it.
    fn is_before(&self, pair: &Pair) -> bool {
        let Some(((tenant, meter, client, _), _)) = self.rows.last_key_value() else {
            return false;
        };
        let last = || (tenant.clone(), meter.clone(), client.clone());
        self.rows.len() >= self.limit && self.group(pair).is_some_and(|group| group > last())
    }

    fn add(
        &mut self,
        (tenant, meter, client): (&str, &str, &str),
        currency: Currency,
        tally: &Tally,
    ) {
        let name = |name: &str| Some(name.to_owned());
        let key = match self.by {
            UsageBy::Tenant => (name(tenant), None, None, currency),
            UsageBy::Meter => (None, name(meter), None, currency),
            UsageBy::Client => (None, None, name(client), currency),
            UsageBy::Both => (name(tenant), name(meter), None, currency),
        };
        if self.after.as_ref().is_some_and(|after| key <= *after) {
            return;
        }
        self.rows.entry(key).or_default().add(tally);
        // A row beyond the page can't come back into it: only smaller ones push it out.
        if self.rows.len() > self.limit {
            self.rows.pop_last();
            self.has_more = true;
        }
    }

    fn into_page(self) -> UsagePage {
        let row = |((tenant, meter, client, currency), tally): (_, Tally)| {
            UsageRow::of((tenant, meter, client), currency, &tally)
        };
        let rows: Vec<_> = self.rows.into_iter().map(row).collect();
        let next = rows.last().filter(|_| self.has_more).map(UsageRow::cursor);
        UsagePage { rows, next }
    }

    /// The rows up to those of a pair, all of which was read.
    fn into_page_until(mut self, read: &Pair) -> UsagePage {
        let group = self.group(read);
        self.rows.retain(|(tenant, meter, client, _), _| {
            group.as_ref().is_some_and(|it| (tenant, meter, client) <= (&it.0, &it.1, &it.2))
        });
        let currency = Currency::LAST;
        let next =
            group.map(|(tenant, meter, client)| UsageCursor { tenant, meter, client, currency });
        UsagePage { next, ..self.into_page() }
    }
}
