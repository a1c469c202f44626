use super::usage_error::{UsageError, wrong};
use crate::config::Client;
use std::collections::BTreeMap;
use tidegate::store::{AnyStore, Store as _, StoreError, UsageBy, UsagePage, UsageQuery, UsageRow};
use tidegate::usage::Currency;

/// Restricts a query to what a client may read: its own tenants, and no other client by name.
pub fn restrict(query: &mut UsageQuery, client: &Client) -> Result<(), UsageError> {
    query.tenant = Some(own_tenant(query.tenant.take(), &client.tenants)?);
    if let Some(asked) = query.client.as_ref().filter(|asked| **asked != client.name) {
        return Err(wrong("client", asked, "the client of the token"));
    }
    if query.by == UsageBy::Client && query.after.is_some() {
        return Err(wrong("after", "a row", "nothing: by client a client has one page"));
    }
    Ok(())
}

/// The tenant of a query that may read these alone. Of others not even their existence is told.
fn own_tenant(asked: Option<String>, tenants: &[String]) -> Result<String, UsageError> {
    match (asked, tenants) {
        (None, [only]) => Ok(only.clone()),
        (Some(asked), _) if tenants.contains(&asked) => Ok(asked),
        (asked, _) => {
            let given = asked.unwrap_or_default();
            Err(wrong("tenant", &given, "a tenant that the token may read"))
        }
    }
}

/// Rows of a page that is read for an answer of all.
const ROWS_AT_ONCE: usize = 10_000;

/// The sums by client as one of the clients may read them: its own, and one of all others that names none.
pub async fn by_client_for(
    store: &AnyStore,
    query: &UsageQuery,
    client: &str,
) -> Result<UsagePage, StoreError> {
    // The answer has all rows: small pages would read the whole of a tenant for each.
    let (mut query, mut rows) = (query.clone().page(None, ROWS_AT_ONCE), Vec::new());
    let mut others = BTreeMap::new();
    loop {
        let page = store.usage_page(&query).await?;
        for row in page.rows {
            if row.client.as_deref() == Some(client) {
                rows.push(row);
            } else {
                add(&mut others, row);
            }
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    rows.extend(others.into_values());
    Ok(UsagePage { rows, next: None })
}

/// Adds a row to the sum of its currency.
fn add(others: &mut BTreeMap<Currency, UsageRow>, row: UsageRow) {
    match others.get_mut(&row.currency) {
        Some(sum) => sum.add(&row),
        None => drop(others.insert(row.currency, UsageRow { client: None, ..row })),
    }
}
