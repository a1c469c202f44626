use super::write;
use crate::storage::name::{escape, unescape};
use crate::storage::postgres::Connected;
use crate::storage::postgres::Settings;
use crate::storage::postgres::store_error;
use crate::store::scan::RecordsSender;
use crate::store::sum::Sum;
use crate::store::tally::Tally;
use crate::store::{StoreError, UsageBy, UsagePage, UsageQuery, UsageRow};
use rust_decimal::Decimal;
use std::borrow::Cow;
use std::sync::Arc;
use tidegate_core::sequence::SeqWindow;
use tidegate_core::usage::{Fallback, PricedRecord, UsageCharge, UsageRecord};
use tokio_postgres::{Client, Row};

const SEEN: &str = "SELECT numbers FROM $schema.senders WHERE name = $1";

const OWNER: &str = "SELECT owner FROM $schema.senders WHERE name = $1";

const USED: &str = "SELECT coalesce(sum(quantity), 0)::text FROM $schema.sums \
    WHERE tenant = $1 AND meter = $2 AND minute_ns >= $3 AND minute_ns < $4";

const USAGE: &str = "SELECT $tenant, $meter, $client, currency, sum(records)::bigint, \
    sum(fallbacks)::bigint, sum(quantity)::text, sum(amount)::text FROM $schema.$source \
    WHERE minute_ns >= $1 AND minute_ns < $2 \
    AND ($3::text IS NULL OR $of_tenant = $3) AND ($4::text IS NULL OR meter = $4) \
    AND ($5::text IS NULL OR $names >= ($5, $6)) AND ($9::text IS NULL OR client = $9) \
    GROUP BY 1, 2, 3, 4 HAVING $5::text IS NULL OR ($group, currency) > ($5, $6, $7) \
    ORDER BY 1, 2, 3, 4 LIMIT $8";

const SCAN: &str = "SELECT time_ns, tenant, meter, quantity::text, labels, amount::text, currency, \
    tariff, fallback FROM $schema.records WHERE time_ns >= $1 AND time_ns < $2";

/// Number of records that are read at once.
const BLOCK_RECORDS: i32 = 1024;

pub(super) async fn seen(
    client: &Client,
    settings: &Settings,
    sender: &str,
) -> Result<SeqWindow, StoreError> {
    let row = client.query_opt(&settings.schema.sql(SEEN), &[&escape(sender)]).await;
    match row.map_err(|error| store_error(&settings.shown, &error))? {
        Some(row) => write::window(settings, row.get(0)),
        None => Ok(SeqWindow::default()),
    }
}

pub(super) async fn owner(
    client: &Client,
    settings: &Settings,
    sender: &str,
) -> Result<Option<Arc<str>>, StoreError> {
    let row = client.query_opt(&settings.schema.sql(OWNER), &[&escape(sender)]).await;
    let row = row.map_err(|error| store_error(&settings.shown, &error))?;
    let owner = row.as_ref().and_then(|row| row.get::<_, Option<&str>>(0));
    Ok(owner.map(|owner| Arc::from(&*unescape(owner))))
}

pub(super) async fn used(
    client: &Client,
    settings: &Settings,
    (tenant, meter): (&str, &str),
    (from_ns, until_ns): (i64, i64),
) -> Result<Decimal, StoreError> {
    let statement = settings.schema.sql(USED);
    let row = client
        .query_one(&statement, &[&escape(tenant), &escape(meter), &from_ns, &until_ns])
        .await
        .map_err(|error| store_error(&settings.shown, &error))?;
    Ok(sum(settings, row.get(0))?.to_decimal())
}

pub(super) async fn usage(
    client: &Client,
    settings: &Settings,
    query: &UsageQuery,
) -> Result<UsagePage, StoreError> {
    let none = r#"NULL::text COLLATE "C""#;
    // Names that are not asked for are the same in all rows.
    let ([tenant, meter, of_client], names) = match query.by {
        UsageBy::Tenant => (["tenant", none, none], "tenant, ''"),
        UsageBy::Meter => ([none, "meter", none], "meter, ''"),
        UsageBy::Client => ([none, none, "client"], "client, ''"),
        UsageBy::Both => (["tenant", "meter", none], "tenant, meter"),
    };
    // Over all tenants their totals are read, however many tenants there are.
    let over_all = query.tenant.is_none() && matches!(query.by, UsageBy::Meter | UsageBy::Client);
    let (source, tenant_column) = if over_all { ("totals", none) } else { ("sums", "tenant") };
    let names = |statement: &str| {
        let statement = statement.replace("$source", source).replace("$of_tenant", tenant_column);
        let statement = statement.replace("$names", &format!("({names})"));
        let statement = statement.replace("$group", names).replace("$client", of_client);
        statement.replace("$tenant", tenant).replace("$meter", meter)
    };
    let statement = settings.schema.sql(&names(USAGE));
    let only_tenant = query.tenant.as_deref().map(escape);
    let only_meter = query.meter.as_deref().map(escape);
    let only_client = query.client.as_deref().map(escape);
    let (after, after_second, after_currency) = after(query);
    // One more tells whether others follow.
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX).saturating_add(1);
    let rows = client
        .query(
            &statement,
            &[
                &query.from_ns(),
                &query.until_ns(),
                &only_tenant,
                &only_meter,
                &after,
                &after_second,
                &after_currency,
                &limit,
                &only_client,
            ],
        )
        .await
        .map_err(|error| store_error(&settings.shown, &error))?;
    let mut rows: Vec<_> =
        rows.iter().map(|row| usage_row(settings, row)).collect::<Result<_, _>>()?;
    let has_more = rows.len() > query.limit;
    rows.truncate(query.limit);
    let next = rows.last().filter(|_| has_more).map(UsageRow::cursor);
    Ok(UsagePage { rows, next })
}

/// The names and the currency after which the rows of a query begin.
fn after(query: &UsageQuery) -> (Option<Cow<'_, str>>, Cow<'_, str>, String) {
    let Some(after) = &query.after else { return (None, "".into(), String::new()) };
    let currency = after.currency.code().to_owned();
    let name = |name: &'_ Option<String>| name.as_deref().unwrap_or_default().to_owned();
    let (first, second) = match query.by {
        UsageBy::Tenant => (name(&after.tenant), String::new()),
        UsageBy::Meter => (name(&after.meter), String::new()),
        UsageBy::Client => (name(&after.client), String::new()),
        UsageBy::Both => (name(&after.tenant), name(&after.meter)),
    };
    let escaped = |name: String| Cow::Owned(escape(&name).into_owned());
    (Some(escaped(first)), escaped(second), currency)
}

fn usage_row(settings: &Settings, row: &Row) -> Result<UsageRow, StoreError> {
    let name =
        |column: usize| row.get::<_, Option<&str>>(column).map(|name| unescape(name).into_owned());
    let currency = row.get::<_, &str>(3).parse();
    let currency = currency.map_err(|error| damaged(settings, &error))?;
    let tally = Tally {
        records: row.get::<_, i64>(4) as u64,
        fallbacks: row.get::<_, i64>(5) as u64,
        quantity: sum(settings, row.get(6))?,
        amount: sum(settings, row.get(7))?,
    };
    Ok(UsageRow::of((name(0), name(1), name(2)), currency, &tally))
}

/// Sends the records of a time, block by block, until all are sent or nobody takes them.
pub(super) async fn scan(settings: &Settings, from_ns: i64, until_ns: i64, to: &RecordsSender) {
    if let Err(error) = try_scan(settings, from_ns, until_ns, to).await {
        // A reader that has left doesn't need to know.
        let _ = to.send(Err(error)).await;
    }
}

async fn try_scan(
    settings: &Settings,
    from_ns: i64,
    until_ns: i64,
    to: &RecordsSender,
) -> Result<(), StoreError> {
    let failed = |error| store_error(&settings.shown, &error);
    // A connection of its own: a slow reader must not keep others from the store.
    let mut connected = Connected::new(settings).await?;
    let client = &mut connected.client;
    client.batch_execute("SET idle_in_transaction_session_timeout = 0").await.map_err(failed)?;
    let transaction = client.transaction().await.map_err(failed)?;
    let statement = settings.schema.sql(SCAN);
    let portal = transaction.bind(&statement, &[&from_ns, &until_ns]).await.map_err(failed)?;
    loop {
        let rows = transaction.query_portal(&portal, BLOCK_RECORDS).await.map_err(failed)?;
        if rows.is_empty() {
            return Ok(());
        }
        let records = rows.iter().map(|row| record(settings, row)).collect::<Result<_, _>>()?;
        if to.send(Ok(records)).await.is_err() {
            return Ok(());
        }
    }
}

fn record(settings: &Settings, row: &Row) -> Result<PricedRecord, StoreError> {
    let name = |column: usize| Arc::<str>::from(&*unescape(row.get::<_, &str>(column)));
    let number = |column: usize| {
        let number = Decimal::from_str_exact(row.get::<_, &str>(column));
        number.map_err(|error| damaged(settings, &error))
    };
    let currency = row.get::<_, &str>(6).parse();
    let code = u8::try_from(row.get::<_, i16>(8)).unwrap_or_default();
    Ok(PricedRecord {
        record: UsageRecord {
            tenant: name(1),
            meter: name(2),
            quantity: number(3)?,
            time_ns: row.get(0),
            labels: name(4),
        },
        charge: UsageCharge {
            amount: number(5)?,
            currency: currency.map_err(|error| damaged(settings, &error))?,
            tariff: name(7),
            fallback: Fallback::from_code(code),
        },
    })
}

pub(super) fn sum(settings: &Settings, text: &str) -> Result<Sum, StoreError> {
    Sum::parse(text).ok_or_else(|| damaged(settings, &format!("{text:?} is no sum of ours")))
}

fn damaged(settings: &Settings, what: &dyn std::fmt::Display) -> StoreError {
    StoreError::Unusable(format!("{}: a row can't be read: {what}", settings.shown))
}
