use super::moment;
use super::table::{aligned, printable};
use crate::admin::{self, Answer};
use crate::failure::Failure;
use crate::usage_flags::{By, UsageFlags};
use jiff::Timestamp;
use serde_json::Value;
use std::io::{self, Write as _};
use tidegate::store::{AnyStore, Store as _, StoreUrl, UsageBy, UsageQuery};
use tidegate_server::ingest::usage_json;
use tokio::runtime::Builder;

/// Digits behind the point of an amount in the table.
const SHOWN_DIGITS: u32 = 4;

/// `tidegate usage`.
pub fn run(flags: &UsageFlags) -> Result<(), Failure> {
    let now = Timestamp::now();
    let from = moment::parse("--since", &flags.since, now)?;
    let until = match &flags.until {
        Some(text) => moment::parse("--until", text, now)?,
        None => now,
    };
    if until <= from {
        return Err(Failure::Usage(format!("--since {from} is not before --until {until}")));
    }
    let (from_ns, until_ns) = (nanoseconds(from)?, nanoseconds(until)?);
    let told = match &flags.store {
        Some(store) => read(store, flags, from_ns, until_ns)?,
        None => ask(flags, from_ns, until_ns)?,
    };
    let text = if flags.json { format!("{told:#}\n") } else { table(&told, flags.by) };
    // A reader that has seen enough, such as `head`, is not a failure.
    let _ = io::stdout().write_all(text.as_bytes());
    Ok(())
}

fn nanoseconds(time: Timestamp) -> Result<i64, Failure> {
    i64::try_from(time.as_nanosecond())
        .map_err(|_| Failure::Usage(format!("{time} is out of range; expected is 1678 … 2262")))
}

fn ask(flags: &UsageFlags, from_ns: i64, until_ns: i64) -> Result<Value, Failure> {
    let mut path =
        format!("/v1/usage?by={}&from_ns={from_ns}&until_ns={until_ns}", flags.by.word());
    for (key, value) in [("tenant", &flags.tenant), ("meter", &flags.meter)] {
        if let Some(value) = value {
            path.push_str(&format!("&{key}={}", admin::percent_encoded(value)));
        }
    }
    let Answer { status, body } = admin::call(&flags.admin.address, "GET", &path, None)?;
    let told: Value = serde_json::from_str(&body)
        .map_err(|_| Failure::Runtime(format!("not a node's answer: {body}")))?;
    match status {
        200 => Ok(told),
        400 => Err(Failure::Usage(told["message"].as_str().unwrap_or(&body).to_owned())),
        _ => Err(Failure::Runtime(told["message"].as_str().unwrap_or(&body).to_owned())),
    }
}

fn read(store: &str, flags: &UsageFlags, from_ns: i64, until_ns: i64) -> Result<Value, Failure> {
    let by = match flags.by {
        By::Tenant => UsageBy::Tenant,
        By::Meter => UsageBy::Meter,
        By::Both => UsageBy::Both,
    };
    let mut query = UsageQuery::new(by, from_ns, until_ns);
    query.tenant.clone_from(&flags.tenant);
    query.meter.clone_from(&flags.meter);
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Runtime(error.to_string()))?;
    runtime.block_on(async {
        let failed = |error: tidegate::store::StoreError| Failure::Runtime(error.to_string());
        if let Ok(StoreUrl::Folder(folder)) = store.parse()
            && !folder.exists()
        {
            // Opening it would make it.
            let shown = folder.display();
            return Err(Failure::Runtime(format!("--store {shown}: there is no such folder")));
        }
        let store = AnyStore::open(store).await.map_err(failed)?;
        let rows = store.usage(&query).await.map_err(failed)?;
        Ok(usage_json(&query, &rows))
    })
}

fn table(told: &Value, by: By) -> String {
    let text = |value: &Value| match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => printable(text),
        other => other.to_string(),
    };
    let named: &[(&str, &str)] = match by {
        By::Tenant => &[("TENANT", "tenant")],
        By::Meter => &[("METER", "meter"), ("QUANTITY", "quantity")],
        By::Both => &[("TENANT", "tenant"), ("METER", "meter"), ("QUANTITY", "quantity")],
    };
    let counted = [
        ("RECORDS", "records"),
        ("NO TARIFF", "fallbacks"),
        ("AMOUNT", "amount"),
        ("", "currency"),
    ];
    let columns: Vec<_> = named.iter().chain(&counted).collect();
    let mut lines = vec![columns.iter().map(|(title, _)| (*title).to_owned()).collect::<Vec<_>>()];
    for row in told["rows"].as_array().into_iter().flatten() {
        let cell = |field: &str| match field {
            "amount" => rounded(&text(&row[field])),
            _ => text(&row[field]),
        };
        lines.push(columns.iter().map(|(_, field)| cell(field)).collect());
    }
    let span = format!("from {} until {}\n", text(&told["from"]), text(&told["until"]));
    if lines.len() == 1 {
        return format!("{span}nothing was used\n");
    }
    let right = |column: usize| column >= named.len() - usize::from(by != By::Tenant);
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
    fn a_table_has_a_row_a_tenant_and_rounds_only_what_it_shows() {
        let told = json!({ "from": "a", "until": "b", "rows": [
            { "tenant": "acme", "meter": null, "currency": "EUR", "records": 12, "fallbacks": 0,
              "quantity": null, "amount": "1234.56785" },
            { "tenant": "é", "meter": null, "currency": "USD", "records": 3, "fallbacks": 3,
              "quantity": null, "amount": "0" },
        ] });
        assert_eq!(
            table(&told, By::Tenant),
            "from a until b\n\
             TENANT  RECORDS  NO TARIFF     AMOUNT\n\
             acme         12          0  1234.5678  EUR\n\
             é             3          3     0.0000  USD\n"
        );
        let none = json!({ "from": "a", "until": "b", "rows": [] });
        assert_eq!(table(&none, By::Both), "from a until b\nnothing was used\n");
    }
}
