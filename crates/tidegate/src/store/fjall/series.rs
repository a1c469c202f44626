//! The series that are stored, and their number by source: bounds hold over restarts.

use super::engine::Engine;
use super::key;
use super::recent::Recent;
use crate::storage::StoreError;
use crate::storage::fjall::Engine as _;
use crate::store::PricedBatch;
use crate::store::series::{KnownSeries, NewSeries, Series, SeriesGuard, SeriesLimits};
use crate::store::tally::TallyKey;
use fjall::OwnedWriteBatch;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Number of series that are written at once.
const AT_ONCE: usize = 4096;

/// Series that are counted and not in their table yet: a checkpoint writes them with their first sums. A crash
/// before it loses their sources, not their number.
pub(super) type PendingSeries = HashMap<Series, Arc<str>>;

/// The series of sums that no checkpoint has covered yet, after the database was opened.
pub(super) fn pending(
    engine: &Engine,
    recent: &Recent,
    mut before: PendingSeries,
) -> Result<PendingSeries, StoreError> {
    let mut pending = PendingSeries::new();
    for series in recent.iter().map(|(key, _)| key.series()).collect::<HashSet<_>>() {
        if !is_stored(engine, &series)? {
            let source = before.remove(&series).unwrap_or_else(|| Arc::from(""));
            pending.insert(series, source);
        }
    }
    Ok(pending)
}

/// Adds the pending series of these sums to a slice of a checkpoint, and returns them.
pub(super) fn write_pending<'a>(
    engine: &Engine,
    pending: &PendingSeries,
    keys: impl Iterator<Item = &'a TallyKey>,
    batch: &mut OwnedWriteBatch,
) -> HashSet<Series> {
    let mut written = HashSet::new();
    for series in keys.map(TallyKey::series) {
        if let Some(source) = pending.get(&series) {
            batch.insert(&engine.series, key::pair(&series.0, &series.1), source.as_bytes());
            written.insert(series);
        }
    }
    written
}

/// A guard for these batches. Without new series it reads nothing.
pub(super) fn guard<'a>(
    engine: &Engine,
    limits: SeriesLimits,
    (known, pending): (&'a KnownSeries, &PendingSeries),
    batches: &[&PricedBatch],
) -> Result<SeriesGuard<'a>, StoreError> {
    let unknown = known.unknown(batches.iter().copied());
    let mut stored = HashSet::new();
    let count = unknown.len();
    for series in unknown {
        if pending.contains_key(&series) || is_stored(engine, &series)? {
            stored.insert(series);
        }
    }
    if stored.len() == count {
        return Ok(SeriesGuard::without_new(known, stored));
    }
    let total = number(engine, key::SERIES_TOTAL)?.unwrap_or(0);
    let mut counts = HashMap::new();
    for batch in batches {
        if !counts.contains_key(&batch.source) {
            let count = number(engine, &key::series_of(&batch.source))?.unwrap_or(0);
            counts.insert(Arc::clone(&batch.source), count);
        }
    }
    Ok(SeriesGuard::new(limits, known, stored, (counts, total)))
}

/// Adds the counts of new series to a commit.
pub(super) fn write_counts(engine: &Engine, new: &NewSeries, batch: &mut OwnedWriteBatch) {
    if new.new.is_empty() {
        return;
    }
    for (source, count) in &new.counts {
        batch.insert(&engine.log, key::series_of(source), count.to_be_bytes());
    }
    batch.insert(&engine.log, key::SERIES_TOTAL, new.total.to_be_bytes());
}

/// Counts the series of a store from before they were counted, once. They have no source.
pub(super) fn count_existing(engine: &Engine, recent: &Recent) -> Result<(), StoreError> {
    if number(engine, key::SERIES_TOTAL)?.is_some() {
        return Ok(());
    }
    let mut pairs: HashSet<Series> = recent.iter().map(|(key, _)| key.series()).collect();
    let mut pair = super::read::next_pair(engine, &engine.sums, &[])?;
    while let Some(found) = pair {
        pairs.insert(found.series());
        if pairs.len() >= AT_ONCE {
            add(engine, &mut pairs)?;
        }
        pair = super::read::next_pair(engine, &engine.sums, &found.after())?;
    }
    add(engine, &mut pairs)?;
    recount(engine)
}

fn add(engine: &Engine, pairs: &mut HashSet<Series>) -> Result<(), StoreError> {
    let mut batch = engine.db.batch();
    for (tenant, meter) in pairs.drain() {
        batch.insert(&engine.series, key::pair(&tenant, &meter), b"");
    }
    engine.tables().wait_for_room()?;
    batch.commit().map_err(|error| engine.trouble(&error))
}

/// Forgets the series that have no sums any more, and counts the others.
pub(super) fn forget_old(engine: &Engine) -> Result<(), StoreError> {
    let mut batch = engine.db.batch();
    for row in engine.series.iter() {
        let pair = row.key().map_err(|error| engine.trouble(&error))?;
        if engine.sums.prefix(&pair).next().is_none() {
            batch.remove(&engine.series, pair);
        }
        if batch.len() >= AT_ONCE {
            engine.tables().wait_for_room()?;
            std::mem::replace(&mut batch, engine.db.batch())
                .commit()
                .map_err(|error| engine.trouble(&error))?;
        }
    }
    batch.commit().map_err(|error| engine.trouble(&error))?;
    recount(engine)
}

fn recount(engine: &Engine) -> Result<(), StoreError> {
    let (mut total, mut counts) = (0_u64, BTreeMap::<Vec<u8>, u64>::new());
    for row in engine.series.iter() {
        let (_, source) = row.into_inner().map_err(|error| engine.trouble(&error))?;
        total += 1;
        if !source.is_empty() {
            let source = std::str::from_utf8(&source).map_err(|_| engine.damaged("a series"))?;
            *counts.entry(key::series_of(source)).or_default() += 1;
        }
    }
    let mut batch = engine.db.batch();
    for row in engine.log.prefix(key::series_of("")) {
        let key = row.key().map_err(|error| engine.trouble(&error))?;
        if !counts.contains_key(&key[..]) {
            batch.remove(&engine.log, key);
        }
    }
    for (key, count) in counts {
        batch.insert(&engine.log, key, count.to_be_bytes());
    }
    batch.insert(&engine.log, key::SERIES_TOTAL, total.to_be_bytes());
    batch.commit().map_err(|error| engine.trouble(&error))
}

fn is_stored(engine: &Engine, (tenant, meter): &Series) -> Result<bool, StoreError> {
    let found = engine.series.contains_key(key::pair(tenant, meter));
    found.map_err(|error| engine.trouble(&error))
}

fn number(engine: &Engine, key: &[u8]) -> Result<Option<u64>, StoreError> {
    let Some(value) = engine.log.get(key).map_err(|error| engine.trouble(&error))? else {
        return Ok(None);
    };
    let bytes = value.first_chunk().ok_or_else(|| engine.damaged("a number of series"))?;
    Ok(Some(u64::from_be_bytes(*bytes)))
}
