use super::IngestView;
use super::client_usage::{by_client_for, restrict};
use super::usage_error::{QUERY_TIME_MAX, UsageError, wrong};
use crate::config::Client;
use crate::http::request::percent_decoded;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tidegate::store::{Store as _, UsageBy, UsageCursor, UsagePage, UsageQuery, UsageRow};
use tokio::time::timeout;

/// The default time range of a query.
const RANGE_DEFAULT: Duration = Duration::from_secs(3_600);

/// Rows of a page by default, and at most: about 3 MB of JSON.
const ROWS_DEFAULT: usize = 1_000;
const ROWS_MAX: usize = 10_000;

/// Answers `GET /v1/usage?by=tenant&from_ns=…&until_ns=…&tenant=…&meter=…&client=…&limit=…&after=…`; every
/// parameter may be left out. A client is told the usage of its own tenants alone, and of other clients no name.
///
/// # Errors
///
/// When a parameter is wrong, or the store can't be read.
pub async fn usage_answer(
    view: &IngestView,
    query: Option<&str>,
    client: Option<&Client>,
) -> Result<Value, UsageError> {
    let mut query = parse(query.unwrap_or_default(), SystemTime::now())?;
    if let Some(client) = client {
        restrict(&mut query, client)?;
    }
    let by_client = query.by == UsageBy::Client;
    let reader = client.filter(|_| by_client).map(|client| client.name.clone());
    let (turns, store, sum_query) = (view.query_turns(), Arc::clone(view.store()), query.clone());
    // Continues after the client has left, and keeps its turn until it ends: else retries would pile up.
    let sum = tokio::spawn(async move {
        // Never closed, so this waits for a turn and never fails.
        let _turn = turns.acquire_owned().await;
        match reader {
            Some(client) => by_client_for(&store, &sum_query, &client).await,
            None => store.usage_page(&sum_query).await,
        }
    });
    match timeout(QUERY_TIME_MAX, sum).await {
        Ok(Ok(page)) => Ok(usage_json(&query, &page?)),
        Ok(Err(_)) | Err(_) => Err(UsageError::TooLong),
    }
}

/// Sums of usage as JSON. Numbers that must be exact are strings.
#[must_use]
pub fn usage_json(query: &UsageQuery, page: &UsagePage) -> Value {
    let row = |row: &UsageRow| {
        json!({
            "tenant": row.tenant,
            "meter": row.meter,
            "client": row.client,
            "currency": row.currency.code(),
            "records": row.records,
            "fallbacks": row.fallbacks,
            "quantity": row.quantity.map(|quantity| quantity.normalize().to_string()),
            "amount": row.amount.normalize().to_string(),
            "overflow": row.overflow,
        })
    };
    json!({
        "by": query.by,
        "from": rfc3339(query.from_ns()),
        "until": rfc3339(query.until_ns()),
        "rows": page.rows.iter().map(row).collect::<Vec<_>>(),
        "next": page.next.as_ref().map(cursor_text),
    })
}

/// The text of a cursor: the names and the currency of the last row.
fn cursor_text(cursor: &UsageCursor) -> String {
    json!([cursor.tenant, cursor.meter, cursor.client, cursor.currency.code()]).to_string()
}

/// The cursor of a text, if it is one of a query by these names.
fn parse_cursor(by: UsageBy, text: &str) -> Option<UsageCursor> {
    let ([tenant, meter, client], currency) = {
        let (tenant, meter, client, currency): (_, _, _, String) =
            serde_json::from_str(text).ok()?;
        ([tenant, meter, client], currency)
    };
    let named = [&tenant, &meter, &client].map(|name: &Option<String>| name.is_some());
    let fits = match by {
        UsageBy::Tenant => named == [true, false, false],
        UsageBy::Meter => named == [false, true, false],
        UsageBy::Both => named == [true, true, false],
        UsageBy::Client => named == [false, false, true],
    };
    fits.then_some(UsageCursor { tenant, meter, client, currency: currency.parse().ok()? })
}

fn rfc3339(ns: i64) -> String {
    let time = jiff::Timestamp::from_nanosecond(i128::from(ns));
    time.map_or_else(|_| ns.to_string(), |time| time.to_string())
}

fn parse(query: &str, now: SystemTime) -> Result<UsageQuery, UsageError> {
    let now_ns = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let now_ns = i64::try_from(now_ns).unwrap_or(i64::MAX);
    let (mut by, mut tenant, mut meter, mut client) = (UsageBy::default(), None, None, None);
    let (mut after, mut limit) = (None, ROWS_DEFAULT);
    let (mut from_ns, mut until_ns) =
        (now_ns.saturating_sub(RANGE_DEFAULT.as_nanos() as i64), now_ns);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = percent_decoded(value);
        match key {
            "by" => by = parse_by(&value)?,
            "from_ns" => from_ns = parse_ns(key, &value)?,
            "until_ns" => until_ns = parse_ns(key, &value)?,
            "tenant" => tenant = Some(value),
            "meter" => meter = Some(value),
            "client" => client = Some(value),
            "after" => after = Some(value),
            "limit" => {
                let rows = value.parse().ok().filter(|rows| (1..=ROWS_MAX).contains(rows));
                let expected = "a whole number, 1 … 10,000";
                limit = rows.ok_or_else(|| wrong(key, &value, expected))?;
            }
            _ => {
                let expected =
                    "one of by, from_ns, until_ns, tenant, meter, client, limit and after";
                return Err(wrong(key, key, expected));
            }
        }
    }
    if until_ns <= from_ns {
        return Err(wrong("until_ns", &until_ns.to_string(), "a time after from_ns"));
    }
    let after = match after {
        Some(text) => {
            let expected = "the next of the page before, of the same query";
            Some(parse_cursor(by, &text).ok_or_else(|| wrong("after", &text, expected))?)
        }
        None => None,
    };
    let mut query = UsageQuery::new(by, from_ns, until_ns).page(after, limit);
    (query.tenant, query.meter, query.client) = (tenant, meter, client);
    Ok(query)
}

fn parse_by(value: &str) -> Result<UsageBy, UsageError> {
    match value {
        "tenant" => Ok(UsageBy::Tenant),
        "meter" => Ok(UsageBy::Meter),
        "both" => Ok(UsageBy::Both),
        "client" => Ok(UsageBy::Client),
        _ => Err(wrong("by", value, "tenant, meter, both or client")),
    }
}

fn parse_ns(key: &str, value: &str) -> Result<i64, UsageError> {
    value.parse().map_err(|_| wrong(key, value, "a whole number of nanoseconds since 1970"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE_NS: i64 = 60_000_000_000;

    #[test]
    fn what_is_not_said_is_the_last_hour_by_tenant() {
        let now = UNIX_EPOCH + Duration::from_secs(100 * 3_600 + 1);
        let query = parse("", now).unwrap();
        assert_eq!(query.by, UsageBy::Tenant);
        assert_eq!(query.from_ns(), 99 * 60 * MINUTE_NS);
        assert_eq!(query.until_ns(), (100 * 60 + 1) * MINUTE_NS, "this minute too");
    }

    #[test]
    fn every_parameter_is_read_and_every_error_named() {
        let text = "by=both&from_ns=0&until_ns=60000000000&tenant=a%20b&meter=m";
        let query = parse(text, UNIX_EPOCH).unwrap();
        assert_eq!((query.tenant.as_deref(), query.meter.as_deref()), (Some("a b"), Some("m")));
        let query = parse("by=client&client=a%20b", UNIX_EPOCH).unwrap();
        assert_eq!((query.by, query.client.as_deref()), (UsageBy::Client, Some("a b")));
        let cursor = UsageCursor {
            tenant: None,
            meter: None,
            client: Some(String::new()),
            currency: "EUR".parse().unwrap(),
        };
        assert_eq!(parse_cursor(UsageBy::Client, &cursor_text(&cursor)), Some(cursor));
        for (text, parameter) in [
            ("by=hour", "by"),
            ("from_ns=yesterday", "from_ns"),
            ("from_ns=5&until_ns=5", "until_ns"),
            ("tennant=a", "tennant"),
            ("limit=0", "limit"),
            ("limit=10001", "limit"),
            ("after=acme", "after"),
            ("by=both&after=%5B%22a%22%2Cnull%2Cnull%2C%22EUR%22%5D", "after"),
            ("by=client&after=%5B%22a%22%2Cnull%2Cnull%2C%22EUR%22%5D", "after"),
        ] {
            let message = parse(text, UNIX_EPOCH).unwrap_err().to_string();
            assert!(message.starts_with(parameter), "{message}");
        }
    }
}
