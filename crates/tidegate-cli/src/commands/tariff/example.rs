use super::flags::ExampleFlags;
use super::summary::hours;
use crate::failure::Failure;
use serde_json::{Value, json};
use std::fmt::Display;
use std::str::FromStr;
use tidegate::tariff::{Quote, Tariffs, time_ns, time_text};

/// Priced example.
pub struct Example<'a> {
    flags: &'a ExampleFlags,
    time_ns: i64,
    quote: Quote,
}

/// Prices the example of the flags.
pub fn price<'a>(
    tariffs: &Tariffs,
    flags: &'a ExampleFlags,
    now_ns: i64,
) -> Result<Example<'a>, Failure> {
    let (used, quantity) = (number("--used", &flags.used)?, number("--quantity", &flags.quantity)?);
    let quote = |time_ns| {
        let (tenant, meter) = (flags.tenant.as_str(), flags.meter.as_str());
        tariffs.quote((tenant, meter), time_ns, used, quantity)
    };
    let wrong = |error: &dyn Display| Failure::Usage(format!("--at: {error}"));
    let Some(at) = &flags.at else {
        return Ok(Example { flags, time_ns: now_ns, quote: quote(now_ns) });
    };
    // A time without offset is in the tariff's time zone, and the tariff depends on the time.
    let near_ns = time_ns(at, "UTC").map_err(|error| wrong(&error))?;
    let zone = zone(tariffs, &quote(near_ns));
    let time_ns = time_ns(at, zone).map_err(|error| wrong(&error))?;
    Ok(Example { flags, time_ns, quote: quote(time_ns) })
}

// === impl Example ===

impl Example<'_> {
    /// Text with one line for each step.
    pub fn text(&self, tariffs: &Tariffs) -> String {
        let Self { flags, quote, .. } = self;
        let mut lines = vec![format!(
            "{} of {} by {} at {}",
            flags.quantity,
            flags.meter,
            flags.tenant,
            self.shown(tariffs, self.time_ns)
        )];
        if let Some(spec) = quote.tariff.and_then(|number| tariffs.specs().get(number)) {
            lines.push(format!("  tariff   {}", spec.name));
            lines.push(format!("  window   {}", self.window(tariffs)));
        }
        if let Some(key) = &quote.tier_key {
            let (from, until) =
                (self.shown(tariffs, key.from_ns), self.shown(tariffs, key.until_ns));
            lines.push(format!("  period   {from} until {until}, used before: {}", flags.used));
        }
        for part in &quote.parts {
            let tier = part.tier.map_or("beyond".to_owned(), |tier| format!("tier {}", tier + 1));
            let (quantity, price) = (part.quantity, part.unit_price);
            lines.push(format!("  {tier:<8} {quantity} × {price} = {}", part.amount.normalize()));
        }
        if let Some(reason) = quote.charge.fallback {
            lines.push(format!("  fallback {reason}: {}", tariffs.fallback().name));
        }
        let charge = &quote.charge;
        lines.push(format!("  amount   {} {}", charge.amount.normalize(), charge.currency));
        lines.join("\n") + "\n"
    }

    /// JSON; numbers are strings, so that none becomes a float.
    pub fn json(&self, tariffs: &Tariffs) -> Value {
        let Self { flags, quote, time_ns } = self;
        let spec = quote.tariff.and_then(|number| tariffs.specs().get(number));
        let window = spec.zip(quote.window).and_then(|(spec, number)| spec.windows.get(number));
        let parts: Vec<_> = quote
            .parts
            .iter()
            .map(|part| {
                json!({
                    "tier": part.tier.map(|tier| tier + 1),
                    "quantity": part.quantity.to_string(),
                    "unit_price": part.unit_price.to_string(),
                    "amount": part.amount.normalize().to_string(),
                })
            })
            .collect();
        json!({
            "tenant": flags.tenant,
            "meter": flags.meter,
            "quantity": flags.quantity,
            "used": flags.used,
            "time_ns": time_ns,
            "tariff": spec.map(|spec| &spec.name),
            "window": window.map(|window| &window.name),
            "period_from_ns": quote.tier_key.as_ref().map(|key| key.from_ns),
            "period_until_ns": quote.tier_key.as_ref().map(|key| key.until_ns),
            "parts": parts,
            "amount": quote.charge.amount.normalize().to_string(),
            "currency": quote.charge.currency.code(),
            "charged_by": &*quote.charge.tariff,
            "fallback": quote.charge.fallback.map(|reason| reason.name()),
        })
    }

    fn window(&self, tariffs: &Tariffs) -> String {
        let spec = self.quote.tariff.and_then(|number| tariffs.specs().get(number));
        let window =
            spec.zip(self.quote.window).and_then(|(spec, number)| spec.windows.get(number));
        match (window, self.quote.parts.is_empty()) {
            (Some(window), _) if window.name == hours(window) => window.name.clone(),
            (Some(window), _) => format!("{} ({})", window.name, hours(window)),
            (None, false) => "none: the tariff's own price".to_owned(),
            (None, true) => "none".to_owned(),
        }
    }

    fn shown(&self, tariffs: &Tariffs, time_ns: i64) -> String {
        time_text(time_ns, zone(tariffs, &self.quote)).unwrap_or_default()
    }
}

/// Time zone to show: the tariff's, else UTC.
fn zone<'a>(tariffs: &'a Tariffs, quote: &Quote) -> &'a str {
    let spec = quote.tariff.and_then(|number| tariffs.specs().get(number));
    spec.map_or("UTC", |spec| &spec.time_zone)
}

fn number<T: FromStr>(flag: &str, given: &str) -> Result<T, Failure> {
    let wrong =
        || format!("{flag}: {given:?} is not a number; expected digits, such as 1500 or 0.25");
    given.parse().map_err(|_| Failure::Usage(wrong()))
}
