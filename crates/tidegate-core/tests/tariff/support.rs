use rust_decimal::Decimal;
use std::sync::Arc;
use tidegate_core::tariff::{
    Days, Evaluator, FallbackSpec, LocalTime, Period, PriceSpec, TariffSpec, Tariffs, Tenants,
    TierSpec, WindowSpec,
};
use tidegate_core::usage::{Currency, UsageCharge, UsageRecord};

pub const HOUR_NS: i64 = 3_600_000_000_000;

pub fn number(text: &str) -> Decimal {
    text.parse().unwrap()
}

pub fn flat(price: &str) -> PriceSpec {
    PriceSpec::Flat(number(price))
}

/// Borders and prices; a border of 0 is none.
pub fn tiers(tiers: &[(i64, &str)]) -> PriceSpec {
    let tier = |(up_to, price): &(i64, &str)| TierSpec {
        up_to: (*up_to != 0).then(|| Decimal::from(*up_to)),
        price: number(price),
    };
    PriceSpec::Tiers(tiers.iter().map(tier).collect())
}

/// Everyone's, for the meter `m`, in UTC, by the month.
pub fn tariff(name: &str, price: Option<PriceSpec>) -> TariffSpec {
    TariffSpec {
        name: name.to_owned(),
        tenants: Tenants::All,
        meter: "m".to_owned(),
        currency: Currency::USD,
        per: 1,
        time_zone: "UTC".to_owned(),
        effective_from: None,
        effective_until: None,
        price,
        windows: Vec::new(),
        period: Some(Period::Month),
    }
}

/// Hours of days, both as clocks show them.
pub fn window(days: Days, from: u16, to: u16, price: PriceSpec) -> WindowSpec {
    let name = format!("{from}-{to}");
    WindowSpec { name, days, from_minute: from * 60, to_minute: to * 60, price }
}

pub fn date(year: i16, month: i8, day: i8) -> Option<LocalTime> {
    Some(LocalTime::new(year, month, day, 0, 0, 0).unwrap())
}

pub fn listed(names: &[&str]) -> Tenants {
    Tenants::Listed(names.iter().map(|name| (*name).to_owned()).collect())
}

pub fn set(specs: Vec<TariffSpec>) -> Arc<Tariffs> {
    Arc::new(Tariffs::new(specs, FallbackSpec::default()).unwrap())
}

pub fn evaluator(specs: Vec<TariffSpec>) -> Evaluator {
    Evaluator::new(set(specs))
}

pub fn record(tenant: &str, meter: &str, quantity: Decimal, time_ns: i64) -> UsageRecord {
    let (tenant, meter) = (tenant.into(), meter.into());
    UsageRecord { tenant, meter, quantity, time_ns, labels: "".into() }
}

pub fn charge(evaluator: &mut Evaluator, quantity: Decimal, time_ns: i64) -> UsageCharge {
    evaluator.price(record("t", "m", quantity, time_ns)).charge
}

pub fn utc(text: &str) -> i64 {
    tidegate_core::tariff::time_ns(text, "UTC").unwrap()
}
