use super::numeric::Numeric;
use super::series;
use crate::storage::name::{escape, unescape};
use crate::storage::postgres::Settings;
use crate::storage::postgres::store_error;
use crate::store::day_sums::{DaySums, large_keys};
use crate::store::decide::{StoredSender, Windows, decide, senders};
use crate::store::series::{KnownSeries, SeriesLimits};
use crate::store::tally::{Tallies, Tally, TallyKey};
use crate::store::{Appended, PricedBatch, StoreError};
use std::collections::HashSet;
use std::pin::pin;
use std::sync::Arc;
use tidegate_core::sequence::SeqWindow;
use tidegate_core::usage::Fallback;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Transaction};

const COPY_RECORDS: &str = "COPY $schema.records \
    (time_ns, tenant, meter, quantity, labels, amount, currency, tariff, fallback) \
    FROM STDIN (FORMAT binary)";

const COPY_SUMS: &str = "COPY $schema.sums \
    (minute_ns, tenant, meter, currency, records, fallbacks, quantity, amount, folded, client) \
    FROM STDIN (FORMAT binary)";

/// In the order of their names, so that two writers never wait for each other in a circle.
const LOCK_SENDERS: &str = "SELECT name, numbers, owner FROM $schema.senders WHERE name = ANY($1) ORDER BY name FOR UPDATE";

const ADD_SENDERS: &str = "INSERT INTO $schema.senders (name, numbers) \
    SELECT name, $2 FROM unnest($1::text[]) AS name ORDER BY name ON CONFLICT DO NOTHING";

const UPDATE_SENDERS: &str = "UPDATE $schema.senders AS old \
    SET numbers = new.numbers, owner = new.owner, last_at = now() \
    FROM unnest($1::text[], $2::bytea[], $3::text[]) AS new (name, numbers, owner) \
    WHERE old.name = new.name";

const DAY_SUM: &str = "SELECT coalesce(sum(quantity), 0)::text, coalesce(sum(amount), 0)::text \
    FROM $schema.sums WHERE tenant = $1 AND meter = $2 AND minute_ns >= $3 AND minute_ns < $4 \
    AND currency = $5";

/// Minutes that are over for ten minutes: what comes later than that stays a row of its own until the next time.
const FOLD: &str = "WITH gone AS ( \
        DELETE FROM $schema.sums \
        WHERE NOT folded AND minute_ns < (extract(epoch FROM now())::bigint - 600) * 1000000000 \
        RETURNING * \
    ) \
    INSERT INTO $schema.sums (minute_ns, tenant, meter, currency, \
        records, fallbacks, quantity, amount, folded, client) \
    SELECT minute_ns, tenant, meter, currency, \
        sum(records)::bigint, sum(fallbacks)::bigint, sum(quantity), sum(amount), true, client \
    FROM gone GROUP BY minute_ns, tenant, meter, currency, client";

const FOLD_TOTALS: &str = "WITH gone AS ( \
        DELETE FROM $schema.totals \
        WHERE NOT folded AND minute_ns < (extract(epoch FROM now())::bigint - 600) * 1000000000 \
        RETURNING * \
    ) \
    INSERT INTO $schema.totals SELECT minute_ns, meter, client, currency, \
        sum(records)::bigint, sum(fallbacks)::bigint, sum(quantity), sum(amount), true \
    FROM gone GROUP BY minute_ns, meter, client, currency";

/// Stores batches in one transaction.
pub(super) async fn append(
    client: &mut Client,
    settings: &Settings,
    (limits, known): (SeriesLimits, &mut KnownSeries),
    batches: &[PricedBatch],
) -> Result<Vec<(Appended, u64)>, StoreError> {
    let failed = |error| store_error(&settings.shown, &error);
    let transaction = client.transaction().await.map_err(failed)?;
    let mut windows = lock(&transaction, settings, &senders(batches)).await?;
    let mut sums = day_sums(&transaction, settings, large_keys(batches)).await?;
    let mut guard = series::guard(&transaction, settings, (limits, known), batches).await?;
    let outcomes = decide(batches, &mut windows, |batch| {
        let new = guard.check(batch)?;
        let count = new.len() as u64;
        sums.add(batch)?;
        guard.begin(batch, new);
        Ok(count)
    });
    let new_series = guard.finish();
    let new = || {
        let both = batches.iter().zip(&outcomes);
        both.filter(|(_, outcome)| outcome.0 == Appended::New).map(|(batch, _)| batch)
    };
    if new().any(|batch| !batch.records.is_empty()) {
        copy_records(&transaction, settings, new()).await.map_err(failed)?;
        copy_sums(&transaction, settings, new()).await.map_err(failed)?;
    }
    series::write(&transaction, settings, &new_series).await.map_err(failed)?;
    update(&transaction, settings, &windows).await.map_err(failed)?;
    transaction.commit().await.map_err(failed)?;
    known.add(new_series.into_known());
    Ok(outcomes)
}

/// Makes one row of many where a minute is over.
pub(super) async fn fold(client: &Client, settings: &Settings) -> Result<u64, StoreError> {
    let failed = |error| store_error(&settings.shown, &error);
    let folded = client.execute(&settings.schema.sql(FOLD), &[]).await.map_err(failed)?;
    client.execute(&settings.schema.sql(FOLD_TOTALS), &[]).await.map_err(failed)?;
    Ok(folded)
}

/// The senders' windows, which nobody else can change until this transaction ends.
async fn lock(
    transaction: &Transaction<'_>,
    settings: &Settings,
    senders: &[Arc<str>],
) -> Result<Windows, StoreError> {
    if senders.is_empty() {
        return Ok(Windows::new([]));
    }
    let failed = |error| store_error(&settings.shown, &error);
    let names: Vec<_> = senders.iter().map(|sender| escape(sender)).collect();
    let statement = settings.schema.sql(LOCK_SENDERS);
    let mut rows = transaction.query(&statement, &[&names]).await.map_err(failed)?;
    if rows.len() < names.len() {
        let empty = SeqWindow::default().to_bytes();
        let add = settings.schema.sql(ADD_SENDERS);
        transaction.execute(&add, &[&names, &&empty[..]]).await.map_err(failed)?;
        rows = transaction.query(&statement, &[&names]).await.map_err(failed)?;
    }
    let mut known = Vec::with_capacity(rows.len());
    for row in rows {
        let name: &str = row.get(0);
        let owner = row.get::<_, Option<&str>>(2).map(|owner| Arc::from(&*unescape(owner)));
        let stored = StoredSender { window: window(settings, row.get(1))?, owner };
        known.push((Arc::from(&*unescape(name)), stored));
    }
    Ok(Windows::new(known))
}

/// The sums of these keys' days. What another writer adds at the same moment is not seen; a query then marks the
/// sum as beyond the range.
async fn day_sums(
    transaction: &Transaction<'_>,
    settings: &Settings,
    keys: HashSet<TallyKey>,
) -> Result<DaySums, StoreError> {
    let mut stored = Vec::with_capacity(keys.len());
    for key in keys {
        let (tenant, meter) = (escape(&key.tenant), escape(&key.meter));
        let (day, currency) = (DaySums::day(&key), key.currency.code());
        let row = transaction
            .query_one(
                &settings.schema.sql(DAY_SUM),
                &[&tenant, &meter, &day.start, &day.end, &currency],
            )
            .await
            .map_err(|error| store_error(&settings.shown, &error))?;
        let sum = |column: usize| super::read::sum(settings, row.get(column));
        let tally = Tally { quantity: sum(0)?, amount: sum(1)?, ..Tally::default() };
        stored.push((key, tally));
    }
    Ok(DaySums::new(stored))
}

/// A sender's window from its bytes.
pub(super) fn window(settings: &Settings, bytes: &[u8]) -> Result<SeqWindow, StoreError> {
    SeqWindow::from_bytes(bytes).map_err(|error| {
        StoreError::Unusable(format!("{}: a sender's numbers are damaged: {error}", settings.shown))
    })
}

async fn copy_records(
    transaction: &Transaction<'_>,
    settings: &Settings,
    batches: impl Iterator<Item = &PricedBatch>,
) -> Result<(), tokio_postgres::Error> {
    let types = [
        Type::INT8,
        Type::TEXT,
        Type::TEXT,
        Type::NUMERIC,
        Type::TEXT,
        Type::NUMERIC,
        Type::TEXT,
        Type::TEXT,
        Type::INT2,
    ];
    let sink = transaction.copy_in(&settings.schema.sql(COPY_RECORDS)).await?;
    let mut writer = pin!(BinaryCopyInWriter::new(sink, &types));
    for priced in batches.flat_map(|batch| &batch.records) {
        let (record, charge) = (&priced.record, &priced.charge);
        let fallback = i16::from(charge.fallback.map_or(0, Fallback::code));
        writer
            .as_mut()
            .write(&[
                &record.time_ns,
                &escape(&record.tenant),
                &escape(&record.meter),
                &Numeric::from(record.quantity),
                &escape(&record.labels),
                &Numeric::from(charge.amount),
                &charge.currency.code(),
                &escape(&charge.tariff),
                &fallback,
            ])
            .await?;
    }
    writer.finish().await.map(drop)
}

async fn copy_sums(
    transaction: &Transaction<'_>,
    settings: &Settings,
    batches: impl Iterator<Item = &PricedBatch>,
) -> Result<(), tokio_postgres::Error> {
    let mut tallies = Tallies::default();
    for batch in batches {
        let client = Arc::from(batch.client());
        batch.records.iter().for_each(|priced| tallies.count(&client, priced));
    }
    let types = [
        Type::INT8,
        Type::TEXT,
        Type::TEXT,
        Type::TEXT,
        Type::INT8,
        Type::INT8,
        Type::NUMERIC,
        Type::NUMERIC,
        Type::BOOL,
        Type::TEXT,
    ];
    let sink = transaction.copy_in(&settings.schema.sql(COPY_SUMS)).await?;
    let mut writer = pin!(BinaryCopyInWriter::new(sink, &types));
    for (key, tally) in tallies.iter() {
        writer
            .as_mut()
            .write(&[
                &key.minute_ns,
                &escape(&key.tenant),
                &escape(&key.meter),
                &key.currency.code(),
                &(tally.records as i64),
                &(tally.fallbacks as i64),
                &Numeric::from(tally.quantity),
                &Numeric::from(tally.amount),
                &false,
                &escape(&key.client),
            ])
            .await?;
    }
    writer.finish().await.map(drop)
}

async fn update(
    transaction: &Transaction<'_>,
    settings: &Settings,
    windows: &Windows,
) -> Result<(), tokio_postgres::Error> {
    let (mut names, mut numbers, mut owners) = (Vec::new(), Vec::new(), Vec::new());
    for (sender, stored) in windows.changed() {
        names.push(escape(sender));
        numbers.push(stored.window.to_bytes().to_vec());
        owners.push(stored.owner.as_deref().map(escape));
    }
    if names.is_empty() {
        return Ok(());
    }
    let statement = settings.schema.sql(UPDATE_SENDERS);
    transaction.execute(&statement, &[&names, &numbers, &owners]).await.map(drop)
}
