use crate::terminal::aligned;
use serde_json::{Value, json};
use tidegate::tariff::{PriceSpec, TariffSpec, Tariffs, Tenants, WindowSpec};

const HEADER: [&str; 8] =
    ["NAME", "TENANTS", "METER", "PRICE", "EFFECTIVE", "ZONE", "WINDOWS", "TIERS"];

/// Tenants that are named; further ones are counted.
const TENANTS_NAMED_MAX: usize = 3;

/// Summary line and a table of tariffs.
pub fn summary(path: &str, tariffs: &Tariffs) -> String {
    let count = tariffs.specs().len();
    let plural = if count == 1 { "" } else { "s" };
    let fallback = tariffs.fallback();
    let mut text = format!(
        "ok: {path}: {count} tariff{plural}; fallback price {} {} per unit ({:?})\n",
        fallback.price, fallback.currency, fallback.name
    );
    if count > 0 {
        let rows = tariffs.specs().iter().map(row);
        let header = HEADER.map(str::to_owned).to_vec();
        text.push_str(&aligned(&std::iter::once(header).chain(rows).collect::<Vec<_>>(), |_| {
            false
        }));
    }
    text
}

/// JSON of all tariffs and the fallback.
pub fn tariffs_json(tariffs: &Tariffs) -> Value {
    let fallback = tariffs.fallback();
    json!({
        "tariffs": tariffs.specs().iter().map(tariff_json).collect::<Vec<_>>(),
        "fallback": {
            "name": fallback.name,
            "price": fallback.price.to_string(),
            "currency": fallback.currency.code(),
        },
    })
}

/// Days and hours of a window.
pub fn hours(window: &WindowSpec) -> String {
    format!("{} {}-{}", window.days, clock(window.from_minute), clock(window.to_minute))
}

fn row(spec: &TariffSpec) -> Vec<String> {
    let windows: Vec<_> = spec.windows.iter().map(hours).collect();
    vec![
        spec.name.clone(),
        tenants(&spec.tenants),
        spec.meter.clone(),
        prices(spec),
        effective(spec),
        spec.time_zone.clone(),
        if windows.is_empty() { "all hours".to_owned() } else { windows.join("; ") },
        tiers(spec),
    ]
}

fn tenants(tenants: &Tenants) -> String {
    match tenants {
        Tenants::All => "*".to_owned(),
        Tenants::Listed(names) if names.len() <= TENANTS_NAMED_MAX => names.join(", "),
        Tenants::Listed(names) => {
            let more = names.len() - TENANTS_NAMED_MAX;
            format!("{} and {more} more", names[..TENANTS_NAMED_MAX].join(", "))
        }
    }
}

/// Range of all prices of a tariff.
fn prices(spec: &TariffSpec) -> String {
    let all = spec.windows.iter().map(|window| &window.price).chain(&spec.price);
    let mut all: Vec<_> = all.flat_map(PriceSpec::tiers).map(|tier| tier.price).collect();
    all.sort();
    let range = match (all.first(), all.last()) {
        (Some(low), Some(high)) if low == high => low.to_string(),
        (Some(low), Some(high)) => format!("{low} … {high}"),
        _ => "none".to_owned(),
    };
    let per = if spec.per == 1 { String::new() } else { format!(" per {}", spec.per) };
    format!("{range} {}{per}", spec.currency)
}

fn effective(spec: &TariffSpec) -> String {
    match (spec.effective_from, spec.effective_until) {
        (None, None) => "always".to_owned(),
        (Some(from), None) => format!("from {from}"),
        (None, Some(until)) => format!("until {until}"),
        (Some(from), Some(until)) => format!("{from} until {until}"),
    }
}

fn tiers(spec: &TariffSpec) -> String {
    let all = spec.windows.iter().map(|window| &window.price).chain(&spec.price);
    let most = all.map(|price| price.tiers().len()).max().unwrap_or(0);
    let tiered = spec.windows.iter().map(|window| &window.price).chain(&spec.price);
    let tiered = tiered.into_iter().any(|price| matches!(price, PriceSpec::Tiers(_)));
    match spec.period {
        Some(period) if tiered => format!("{most} a {period}"),
        _ => "none".to_owned(),
    }
}

fn clock(minute: u16) -> String {
    format!("{:02}:{:02}", minute / 60, minute % 60)
}

fn tariff_json(spec: &TariffSpec) -> Value {
    let tenants = match &spec.tenants {
        Tenants::All => json!("*"),
        Tenants::Listed(names) => json!(names),
    };
    let windows: Vec<_> = spec
        .windows
        .iter()
        .map(|window| {
            json!({
                "name": window.name,
                "days": window.days.iter().map(|day| tidegate::tariff::Days::NAMES[usize::from(day)]).collect::<Vec<_>>(),
                "from": clock(window.from_minute),
                "to": clock(window.to_minute),
                "tiers": price_json(&window.price),
            })
        })
        .collect();
    json!({
        "name": spec.name,
        "tenants": tenants,
        "meter": spec.meter,
        "currency": spec.currency.code(),
        "per": spec.per,
        "time_zone": spec.time_zone,
        "effective_from": spec.effective_from.map(|at| at.to_string()),
        "effective_until": spec.effective_until.map(|at| at.to_string()),
        "period": spec.period.map(|period| period.name()),
        "tiers": spec.price.as_ref().map(price_json),
        "windows": windows,
    })
}

/// JSON of a price; numbers are strings, so that none becomes a float.
fn price_json(price: &PriceSpec) -> Value {
    let tier = |tier: &tidegate::tariff::TierSpec| {
        json!({
            "up_to": tier.up_to.map(|up_to| up_to.to_string()),
            "price": tier.price.to_string(),
        })
    };
    price.tiers().iter().map(tier).collect()
}
