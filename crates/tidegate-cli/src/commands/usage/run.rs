use super::flags::{By, UsageFlags};
use super::time;
use crate::admin_client::{AdminResponse, call, percent_encoded};
use crate::failure::Failure;
use crate::terminal::{aligned, print, printable};
use jiff::Timestamp;
use serde_json::Value;
use tidegate::store::{AnyStore, Store as _, StoreUrl, UsageBy, UsagePage, UsageQuery};
use tidegate_server::ingest::usage_json;
use tokio::runtime::Builder;

/// Rows that are asked for at once.
const PAGE_ROWS: usize = 5_000;

/// Decimal places of amounts in the table.
const SHOWN_DIGITS: u32 = 4;

/// `tidegate usage`.
pub fn run(flags: &UsageFlags) -> Result<(), Failure> {
    let now = Timestamp::now();
    let from = time::parse("--since", &flags.since, now)?;
    let until = match &flags.until {
        Some(text) => time::parse("--until", text, now)?,
        None => now,
    };
    if until <= from {
        return Err(Failure::Usage(format!("--since {from} is not before --until {until}")));
    }
    let (from_ns, until_ns) = (nanoseconds(from)?, nanoseconds(until)?);
    let usage = match &flags.store {
        Some(store) => read(store, flags, from_ns, until_ns)?,
        None => request(flags, from_ns, until_ns)?,
    };
    let text = if flags.json { format!("{usage:#}\n") } else { table(&usage, flags.by) };
    print(&text);
    Ok(())
}

fn nanoseconds(time: Timestamp) -> Result<i64, Failure> {
    i64::try_from(time.as_nanosecond())
        .map_err(|_| Failure::Usage(format!("{time} is out of range; expected 1678 … 2262")))
}

/// Asks for page after page.
fn request(flags: &UsageFlags, from_ns: i64, until_ns: i64) -> Result<Value, Failure> {
    let mut usage = request_page(flags, (from_ns, until_ns), None)?;
    while let Some(next) = usage["next"].as_str().map(str::to_owned) {
        let mut page = request_page(flags, (from_ns, until_ns), Some(&next))?;
        if let (Some(rows), Some(more)) =
            (usage["rows"].as_array_mut(), page["rows"].as_array_mut())
        {
            rows.append(more);
        }
        usage["next"] = page["next"].take();
    }
    Ok(usage)
}

fn request_page(
    flags: &UsageFlags,
    (from_ns, until_ns): (i64, i64),
    after: Option<&str>,
) -> Result<Value, Failure> {
    let mut path =
        format!("/v1/usage?by={}&from_ns={from_ns}&until_ns={until_ns}", flags.by.word());
    let filters = [("tenant", &flags.tenant), ("meter", &flags.meter), ("client", &flags.client)];
    for (key, value) in filters {
        if let Some(value) = value {
            path.push_str(&format!("&{key}={}", percent_encoded(value)));
        }
    }
    path.push_str(&format!("&limit={PAGE_ROWS}"));
    if let Some(after) = after {
        path.push_str(&format!("&after={}", percent_encoded(after)));
    }
    let response = call(&flags.admin, "GET", &path, None)?;
    let advice = response.token_advice();
    let AdminResponse { status, body } = response;
    let usage: Value = serde_json::from_str(&body)
        .map_err(|_| Failure::Runtime(format!("unexpected response: {body}")))?;
    match status {
        200 => Ok(usage),
        400 => Err(Failure::Usage(usage["message"].as_str().unwrap_or(&body).to_owned())),
        _ => {
            let message = usage["message"].as_str().unwrap_or(&body);
            Err(Failure::Runtime(format!("{message}{advice}")))
        }
    }
}

fn read(store: &str, flags: &UsageFlags, from_ns: i64, until_ns: i64) -> Result<Value, Failure> {
    let by = match flags.by {
        By::Tenant => UsageBy::Tenant,
        By::Meter => UsageBy::Meter,
        By::Both => UsageBy::Both,
        By::Client => UsageBy::Client,
    };
    let mut query = UsageQuery::new(by, from_ns, until_ns);
    query.tenant.clone_from(&flags.tenant);
    query.meter.clone_from(&flags.meter);
    query.client.clone_from(&flags.client);
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Runtime(error.to_string()))?;
    runtime.block_on(async {
        if let Ok(StoreUrl::Folder(folder)) = store.parse()
            && !folder.exists()
        {
            // Opening a folder that does not exist would create it.
            let shown = folder.display();
            return Err(Failure::Runtime(format!("--store {shown}: no such folder")));
        }
        let store = AnyStore::open(store).await.map_err(Failure::runtime)?;
        let rows = store.usage(&query).await.map_err(Failure::runtime)?;
        Ok(usage_json(&query, &UsagePage { rows, next: None }))
    })
}

fn table(usage: &Value, by: By) -> String {
    let text = |value: &Value| match value {
        Value::Null => "-".to_owned(),
        // The client of what came without a token.
        Value::String(text) if text.is_empty() => "-".to_owned(),
        Value::String(text) => printable(text),
        other => other.to_string(),
    };
    let named: &[(&str, &str)] = match by {
        By::Tenant => &[("TENANT", "tenant")],
        By::Meter => &[("METER", "meter"), ("QUANTITY", "quantity")],
        By::Both => &[("TENANT", "tenant"), ("METER", "meter"), ("QUANTITY", "quantity")],
        By::Client => &[("CLIENT", "client")],
    };
    let counted = [
        ("RECORDS", "records"),
        ("NO TARIFF", "fallbacks"),
        ("AMOUNT", "amount"),
        ("", "currency"),
    ];
    let columns: Vec<_> = named.iter().chain(&counted).collect();
    let mut lines = vec![columns.iter().map(|(title, _)| (*title).to_owned()).collect::<Vec<_>>()];
    for row in usage["rows"].as_array().into_iter().flatten() {
        let cell = |field: &str| match field {
            "amount" => rounded(&text(&row[field])),
            _ => text(&row[field]),
        };
        lines.push(columns.iter().map(|(_, field)| cell(field)).collect());
    }
    let span = format!("from {} until {}\n", text(&usage["from"]), text(&usage["until"]));
    if lines.len() == 1 {
        return format!("{span}no usage\n");
    }
    let has_quantity = matches!(by, By::Meter | By::Both);
    let right = |column: usize| column >= named.len() - usize::from(has_quantity);
    span + &aligned(&lines, right)
}

fn rounded(amount: &str) -> String {
    amount.parse::<rust_decimal::Decimal>().map_or_else(
        |_| amount.to_owned(),
        |amount| {
            let mut shown = amount.round_dp(SHOWN_DIGITS);
            shown.rescale(SHOWN_DIGITS);
            shown.to_string()
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_table_has_a_row_for_each_tenant_with_rounded_amounts() {
        let usage = json!({ "from": "a", "until": "b", "rows": [
            { "tenant": "acme", "meter": null, "currency": "EUR", "records": 12, "fallbacks": 0,
              "quantity": null, "amount": "1234.56785" },
            { "tenant": "é", "meter": null, "currency": "USD", "records": 3, "fallbacks": 3,
              "quantity": null, "amount": "0" },
        ] });
        assert_eq!(
            table(&usage, By::Tenant),
            "from a until b\n\
             TENANT  RECORDS  NO TARIFF     AMOUNT\n\
             acme         12          0  1234.5678  EUR\n\
             é             3          3     0.0000  USD\n"
        );
        let by_client = json!({ "from": "a", "until": "b", "rows": [
            { "client": "", "currency": "EUR", "records": 1, "fallbacks": 0, "amount": "1" },
            { "client": "agent", "currency": "EUR", "records": 2, "fallbacks": 0, "amount": "2" },
        ] });
        assert_eq!(
            table(&by_client, By::Client),
            "from a until b\n\
             CLIENT  RECORDS  NO TARIFF  AMOUNT\n\
             -             1          0  1.0000  EUR\n\
             agent         2          0  2.0000  EUR\n"
        );
        let none = json!({ "from": "a", "until": "b", "rows": [] });
        assert_eq!(table(&none, By::Both), "from a until b\nno usage\n");
    }
}
