//! The series that are stored, and their number by source: bounds hold over restarts and for all writers.

use crate::storage::name::{escape, unescape};
use crate::storage::postgres::{Settings, store_error};
use crate::store::series::{KnownSeries, NewSeries, SeriesGuard, SeriesLimits};
use crate::store::{PricedBatch, StoreError};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tokio_postgres::{Client, Transaction};

const STORED: &str = "SELECT tenant, meter FROM $schema.series \
    JOIN unnest($1::text[], $2::text[]) AS wanted (tenant, meter) USING (tenant, meter)";

/// In the order of their names, so that two writers never wait for each other in a circle.
const ADD_COUNTS: &str = "INSERT INTO $schema.series_counts (source, count) \
    SELECT source, 0 FROM unnest($1::text[]) AS source ORDER BY source ON CONFLICT DO NOTHING";

const LOCK_COUNTS: &str = "SELECT source, count FROM $schema.series_counts \
    WHERE source = ANY($1) ORDER BY source FOR UPDATE";

const ADD_SERIES: &str = "INSERT INTO $schema.series (tenant, meter, source) \
    SELECT tenant, meter, source FROM unnest($1::text[], $2::text[], $3::text[]) \
    AS new (tenant, meter, source) ON CONFLICT DO NOTHING";

const UPDATE_COUNTS: &str = "UPDATE $schema.series_counts AS old SET count = new.count \
    FROM unnest($1::text[], $2::bigint[]) AS new (source, count) WHERE old.source = new.source";

const FORGET: &str = "DELETE FROM $schema.series AS old WHERE NOT EXISTS \
    (SELECT FROM $schema.sums AS sums WHERE sums.tenant = old.tenant AND sums.meter = old.meter)";

const RECOUNT: &str = "INSERT INTO $schema.series_counts \
    SELECT source, count(*) FROM $schema.series WHERE source <> '' GROUP BY source \
    UNION ALL SELECT '', count(*) FROM $schema.series";

/// Source under which the number of all series is kept.
const ALL: &str = "";

/// A guard for these batches. With new series, their counts can't be changed by others until the transaction ends.
pub(super) async fn guard<'a>(
    transaction: &Transaction<'_>,
    settings: &Settings,
    (limits, known): (SeriesLimits, &'a KnownSeries),
    batches: &[PricedBatch],
) -> Result<SeriesGuard<'a>, StoreError> {
    let unknown = known.unknown(batches);
    if unknown.is_empty() {
        return Ok(SeriesGuard::without_new(known, HashSet::new()));
    }
    let failed = |error| store_error(&settings.shown, &error);
    let tenants: Vec<_> = unknown.iter().map(|(tenant, _)| escape(tenant)).collect();
    let meters: Vec<_> = unknown.iter().map(|(_, meter)| escape(meter)).collect();
    let statement = settings.schema.sql(STORED);
    let rows = transaction.query(&statement, &[&tenants, &meters]).await.map_err(failed)?;
    let name = |text: &str| Arc::<str>::from(&*unescape(text));
    let stored: HashSet<_> = rows.iter().map(|row| (name(row.get(0)), name(row.get(1)))).collect();
    if stored.len() == unknown.len() {
        return Ok(SeriesGuard::without_new(known, stored));
    }
    let mut sources: Vec<&str> = batches.iter().map(|batch| &*batch.source).collect();
    sources.push(ALL);
    sources.sort_unstable();
    sources.dedup();
    let sources: Vec<_> = sources.into_iter().map(escape).collect();
    let (add, lock) = (settings.schema.sql(ADD_COUNTS), settings.schema.sql(LOCK_COUNTS));
    transaction.execute(&add, &[&sources]).await.map_err(failed)?;
    let rows = transaction.query(&lock, &[&sources]).await.map_err(failed)?;
    let count = |row: &tokio_postgres::Row| (name(row.get(0)), row.get::<_, i64>(1) as u64);
    let mut counts: HashMap<_, _> = rows.iter().map(count).collect();
    let total = counts.remove(ALL).unwrap_or(0);
    Ok(SeriesGuard::new(limits, known, stored, (counts, total)))
}

/// Adds new series.
pub(super) async fn write(
    transaction: &Transaction<'_>,
    settings: &Settings,
    new: &NewSeries,
) -> Result<(), tokio_postgres::Error> {
    if new.new.is_empty() {
        return Ok(());
    }
    let tenants: Vec<_> = new.new.keys().map(|(tenant, _)| escape(tenant)).collect();
    let meters: Vec<_> = new.new.keys().map(|(_, meter)| escape(meter)).collect();
    let sources: Vec<_> = new.new.values().map(|source| escape(source)).collect();
    let statement = settings.schema.sql(ADD_SERIES);
    transaction.execute(&statement, &[&tenants, &meters, &sources]).await?;
    let mut names: Vec<_> = new.counts.iter().map(|(source, _)| escape(source)).collect();
    let mut counts: Vec<_> = new.counts.iter().map(|(_, count)| *count as i64).collect();
    names.push(escape(ALL));
    counts.push(new.total as i64);
    let statement = settings.schema.sql(UPDATE_COUNTS);
    transaction.execute(&statement, &[&names, &counts]).await.map(drop)
}

/// Forgets the series that have no sums any more, and counts the others.
pub(super) async fn forget_old(
    client: &mut Client,
    settings: &Settings,
) -> Result<(), tokio_postgres::Error> {
    let transaction = client.transaction().await?;
    let sql = |statement: &str| settings.schema.sql(statement);
    // Whoever begins a series waits until they are counted.
    transaction.batch_execute(&sql("LOCK TABLE $schema.series_counts IN EXCLUSIVE MODE")).await?;
    transaction.execute(&sql(FORGET), &[]).await?;
    transaction.execute(&sql("DELETE FROM $schema.series_counts"), &[]).await?;
    transaction.execute(&sql(RECOUNT), &[]).await?;
    transaction.commit().await
}
