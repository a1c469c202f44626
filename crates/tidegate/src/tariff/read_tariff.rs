use super::table::{Ledger, Table};
use super::values::{self, Unfit, given};
use tidegate_core::tariff::{
    Days, FallbackSpec, Place, PriceSpec, TariffSpec, Tenants, TierSpec, WindowSpec,
};
use tidegate_core::usage::Currency;
use toml::de::{DeTable, DeValue};

const FALLBACK_KEYS: &[&str] = &["name", "price", "currency"];
const TARIFF_KEYS: &[&str] = &[
    "name",
    "tenants",
    "meter",
    "currency",
    "per",
    "time_zone",
    "effective_from",
    "effective_until",
    "price",
    "tiers",
    "period",
    "window",
];
const WINDOW_KEYS: &[&str] = &["name", "days", "from", "to", "price", "tiers"];
const TIER_KEYS: &[&str] = &["up_to", "price"];

/// `[fallback]`.
pub(super) fn fallback(entries: &DeTable<'_>, ledger: &mut Ledger) -> FallbackSpec {
    let table = ledger.table(entries, Place::default(), FALLBACK_KEYS);
    let default = FallbackSpec::default();
    FallbackSpec {
        name: table.value("name", ledger, values::text).unwrap_or(default.name),
        price: table.value("price", ledger, values::decimal).unwrap_or(default.price),
        currency: table.value("currency", ledger, currency).unwrap_or(default.currency),
    }
}

/// One `[[tariff]]`, as far as it can be read.
pub(super) fn tariff(entries: &DeTable<'_>, place: Place, ledger: &mut Ledger) -> TariffSpec {
    let known_name = entries.get("name").and_then(|name| values::text(name.get_ref()).ok());
    ledger.named(known_name);
    let table = ledger.table(entries, place, TARIFF_KEYS);
    let name = table.needed("name", ledger, values::text);
    let tenants = table.needed("tenants", ledger, tenants);
    let meter = table.needed("meter", ledger, values::text);
    TariffSpec {
        name: name.unwrap_or_default(),
        tenants: tenants.unwrap_or(Tenants::All),
        meter: meter.unwrap_or_default(),
        currency: table.value("currency", ledger, currency).unwrap_or(Currency::USD),
        per: table.value("per", ledger, values::count).unwrap_or(1),
        time_zone: table.value("time_zone", ledger, time_zone).unwrap_or_else(|| "UTC".to_owned()),
        effective_from: table.value("effective_from", ledger, values::local_time),
        effective_until: table.value("effective_until", ledger, values::local_time),
        price: price(&table, ledger),
        windows: windows(&table, ledger).unwrap_or_default(),
        period: table.value("period", ledger, period),
    }
}

/// All windows, or none when one of them can't be read.
fn windows(tariff: &Table<'_, '_>, ledger: &mut Ledger) -> Option<Vec<WindowSpec>> {
    let mut windows = Vec::new();
    let tables = tariff.tables("window", ledger, "each window under its own [[tariff.window]]");
    for (number, (at, entries)) in tables.into_iter().enumerate() {
        let place = tariff.place.window(number);
        ledger.begins(place, at);
        let table = ledger.table(entries, place, WINDOW_KEYS);
        let days = table.value("days", ledger, values::days).unwrap_or(Days::ALL);
        let from = table.needed("from", ledger, values::clock);
        let to = table.needed("to", ledger, values::clock);
        let name = table.value("name", ledger, values::text);
        let price = price(&table, ledger);
        if table.get("price").is_none() && table.get("tiers").is_none() {
            let fix = "write price = \"…\" or tiers = […]";
            ledger.add(place, Unfit::new("it has no price", "a price or tiers", fix));
        }
        windows.push(from.zip(to).zip(price).map(|((from_minute, to_minute), price)| {
            let name = name.unwrap_or_else(|| window_name(days, from_minute, to_minute));
            WindowSpec { name, days, from_minute, to_minute, price }
        }));
    }
    windows.into_iter().collect()
}

fn window_name(days: Days, from: u16, to: u16) -> String {
    let clock = |minute: u16| format!("{:02}:{:02}", minute / 60, minute % 60);
    format!("{days} {}-{}", clock(from), clock(to))
}

/// `price` or `tiers` of a tariff or a window; `None` when a part can't be read.
fn price(table: &Table<'_, '_>, ledger: &mut Ledger) -> Option<PriceSpec> {
    let flat = table.value("price", ledger, values::decimal);
    if table.get("price").is_some() && table.get("tiers").is_some() {
        let unfit = Unfit::new("price and tiers are both given", "one of them", "remove one");
        ledger.add(table.place.key("tiers"), unfit);
    }
    if table.get("tiers").is_none() {
        return flat.map(PriceSpec::Flat);
    }
    let shape = "a list such as [{ up_to = 1000, price = \"2\" }, { price = \"1\" }]";
    let mut tiers = Vec::new();
    for (number, (at, entries)) in table.tables("tiers", ledger, shape).into_iter().enumerate() {
        let place = table.place.tier(number);
        ledger.begins(place, at);
        let tier = ledger.table(entries, place, TIER_KEYS);
        let price = tier.needed("price", ledger, values::decimal);
        let up_to = tier.value("up_to", ledger, values::decimal);
        tiers.push(price.map(|price| TierSpec { up_to, price }));
    }
    tiers.into_iter().collect::<Option<_>>().map(PriceSpec::Tiers)
}

fn tenants(value: &DeValue<'_>) -> Result<Tenants, Unfit> {
    match value {
        DeValue::String(text) if text == "*" => Ok(Tenants::All),
        other => values::texts(other).map(Tenants::Listed).map_err(|unfit| Unfit {
            expected: "\"*\" for everyone, or a list such as [\"acme\", \"globex\"]".to_owned(),
            ..unfit
        }),
    }
}

fn currency(value: &DeValue<'_>) -> Result<Currency, Unfit> {
    let unfit =
        || Unfit::new(given(value), "three capital letters", "write a code such as \"EUR\"");
    values::text(value).map_err(|_| unfit())?.parse().map_err(|_| unfit())
}

fn period(value: &DeValue<'_>) -> Result<tidegate_core::tariff::Period, Unfit> {
    let unfit =
        || Unfit::new(given(value), "\"day\", \"month\" or \"year\"", "use one of these words");
    values::text(value).map_err(|_| unfit())?.parse().map_err(|_| unfit())
}

/// A zone's name is checked here for the sake of the nearest one: there are hundreds.
fn time_zone(value: &DeValue<'_>) -> Result<String, Unfit> {
    let name = values::text(value)?;
    let known = tidegate_core::tariff::zone_names();
    if known.iter().any(|known| known.eq_ignore_ascii_case(&name)) {
        return Ok(name);
    }
    // Most often the continent is forgotten.
    let city = |zone: &&String| {
        let last = zone.rsplit('/').next().unwrap_or_default();
        last.eq_ignore_ascii_case(&name)
    };
    let near = known.iter().find(city).map(String::as_str);
    let near = near.or_else(|| super::mistakes::nearest(&name, known.iter().map(String::as_str)));
    let fix = match near {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => "write a name such as \"Europe/Berlin\" or \"UTC\"".to_owned(),
    };
    Err(Unfit::new(
        format!("{} is no time zone", super::mistakes::quoted(&name)),
        "an IANA name",
        fix,
    ))
}
