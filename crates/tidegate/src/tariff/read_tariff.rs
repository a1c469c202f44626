use super::table::{FileReader, Table};
use super::values::{self, ValueError, given};
use tidegate_core::tariff::{
    Days, FallbackSpec, Location, PriceSpec, TariffSpec, Tenants, TierSpec, WindowSpec,
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

/// Reads `[fallback]`.
pub(super) fn fallback(entries: &DeTable<'_>, reader: &mut FileReader) -> FallbackSpec {
    let table = reader.table(entries, Location::default(), FALLBACK_KEYS);
    let default = FallbackSpec::default();
    FallbackSpec {
        name: table.value("name", reader, values::text).unwrap_or(default.name),
        price: table.value("price", reader, values::decimal).unwrap_or(default.price),
        currency: table.value("currency", reader, currency).unwrap_or(default.currency),
    }
}

/// Reads one `[[tariff]]`, as far as possible.
pub(super) fn tariff(
    entries: &DeTable<'_>,
    location: Location,
    reader: &mut FileReader,
) -> TariffSpec {
    let known_name = entries.get("name").and_then(|name| values::text(name.get_ref()).ok());
    reader.named(known_name);
    let table = reader.table(entries, location, TARIFF_KEYS);
    let name = table.needed("name", reader, values::text);
    let tenants = table.needed("tenants", reader, tenants);
    let meter = table.needed("meter", reader, values::text);
    TariffSpec {
        name: name.unwrap_or_default(),
        tenants: tenants.unwrap_or(Tenants::All),
        meter: meter.unwrap_or_default(),
        currency: table.value("currency", reader, currency).unwrap_or(Currency::USD),
        per: table.value("per", reader, values::count).unwrap_or(1),
        time_zone: table.value("time_zone", reader, time_zone).unwrap_or_else(|| "UTC".to_owned()),
        effective_from: table.value("effective_from", reader, values::local_time),
        effective_until: table.value("effective_until", reader, values::local_time),
        price: price(&table, reader),
        windows: windows(&table, reader).unwrap_or_default(),
        period: table.value("period", reader, period),
    }
}

/// Reads all windows; `None` if one of them is unreadable.
fn windows(tariff: &Table<'_, '_>, reader: &mut FileReader) -> Option<Vec<WindowSpec>> {
    let mut windows = Vec::new();
    let tables = tariff.tables("window", reader, "each window under its own [[tariff.window]]");
    for (number, (at, entries)) in tables.into_iter().enumerate() {
        let location = tariff.location.window(number);
        reader.begins(location, at);
        let table = reader.table(entries, location, WINDOW_KEYS);
        let days = table.value("days", reader, values::days).unwrap_or(Days::ALL);
        let from = table.needed("from", reader, values::clock);
        let to = table.needed("to", reader, values::clock);
        let name = table.value("name", reader, values::text);
        let price = price(&table, reader);
        if table.get("price").is_none() && table.get("tiers").is_none() {
            let fix = "write price = \"…\" or tiers = […]";
            reader.add(location, ValueError::new("it has no price", "a price or tiers", fix));
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

/// Reads `price` or `tiers` of a tariff or a window; `None` if a part is unreadable.
fn price(table: &Table<'_, '_>, reader: &mut FileReader) -> Option<PriceSpec> {
    let flat = table.value("price", reader, values::decimal);
    if table.get("price").is_some() && table.get("tiers").is_some() {
        let error = ValueError::new("price and tiers are both given", "one of them", "remove one");
        reader.add(table.location.key("tiers"), error);
    }
    if table.get("tiers").is_none() {
        return flat.map(PriceSpec::Flat);
    }
    let shape = "a list such as [{ up_to = 1000, price = \"2\" }, { price = \"1\" }]";
    let mut tiers = Vec::new();
    for (number, (at, entries)) in table.tables("tiers", reader, shape).into_iter().enumerate() {
        let location = table.location.tier(number);
        reader.begins(location, at);
        let tier = reader.table(entries, location, TIER_KEYS);
        let price = tier.needed("price", reader, values::decimal);
        let up_to = tier.value("up_to", reader, values::decimal);
        tiers.push(price.map(|price| TierSpec { up_to, price }));
    }
    tiers.into_iter().collect::<Option<_>>().map(PriceSpec::Tiers)
}

fn tenants(value: &DeValue<'_>) -> Result<Tenants, ValueError> {
    match value {
        DeValue::String(text) if text == "*" => Ok(Tenants::All),
        other => values::texts(other).map(Tenants::Listed).map_err(|error| ValueError {
            expected: "\"*\" for everyone, or a list such as [\"acme\", \"globex\"]".to_owned(),
            ..error
        }),
    }
}

fn currency(value: &DeValue<'_>) -> Result<Currency, ValueError> {
    let error =
        || ValueError::new(given(value), "three capital letters", "write a code such as \"EUR\"");
    values::text(value).map_err(|_| error())?.parse().map_err(|_| error())
}

fn period(value: &DeValue<'_>) -> Result<tidegate_core::tariff::Period, ValueError> {
    let error = || {
        ValueError::new(given(value), "\"day\", \"month\" or \"year\"", "use one of these words")
    };
    values::text(value).map_err(|_| error())?.parse().map_err(|_| error())
}

/// Checks the name of a zone, to suggest the nearest one.
fn time_zone(value: &DeValue<'_>) -> Result<String, ValueError> {
    let name = values::text(value)?;
    let known = tidegate_core::tariff::zone_names();
    if known.iter().any(|known| known.eq_ignore_ascii_case(&name)) {
        return Ok(name);
    }
    // The continent is often missing.
    let city = |zone: &&String| {
        let last = zone.rsplit('/').next().unwrap_or_default();
        last.eq_ignore_ascii_case(&name)
    };
    let near = known.iter().find(city).map(String::as_str);
    let near = near
        .or_else(|| tidegate_core::suggestion::nearest(&name, known.iter().map(String::as_str)));
    let fix = match near {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => "write a name such as \"Europe/Berlin\" or \"UTC\"".to_owned(),
    };
    Err(ValueError::new(
        format!("{} is no time zone", super::diagnostics::quoted(&name)),
        "an IANA name",
        fix,
    ))
}
