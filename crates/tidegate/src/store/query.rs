use super::tally::{MINUTE_NS, Tally, floor};
use rust_decimal::Decimal;
use serde::Serialize;
use tidegate_core::usage::Currency;

/// A query for sums of usage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageQuery {
    /// One row for each of what.
    pub by: UsageBy,
    from_ns: i64,
    until_ns: i64,
    /// Only this tenant's.
    pub tenant: Option<String>,
    /// Only this meter's.
    pub meter: Option<String>,
}

/// One row for each of what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum UsageBy {
    /// Each tenant and currency.
    #[default]
    Tenant,
    /// Each meter and currency.
    Meter,
    /// Each tenant, meter and currency.
    Both,
}

/// A sum of usage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRow {
    /// The tenant; `None` in a sum over tenants.
    pub tenant: Option<String>,
    /// Of what; `None` when not asked for by meter.
    pub meter: Option<String>,
    /// In what money the amount is.
    pub currency: Currency,
    /// Number of records.
    pub records: u64,
    /// Number of records that no tariff matched.
    pub fallbacks: u64,
    /// The sum of what was used. Without a meter this adds up unlike things, and is `None`.
    pub quantity: Option<Decimal>,
    /// The sum of what it costs. Summed up exactly; rounded only if it has more digits than a decimal number.
    pub amount: Decimal,
}

// === impl UsageQuery ===

impl UsageQuery {
    /// All usage from one time up to another, the first rounded down and the second up to a whole minute.
    #[must_use]
    pub fn new(by: UsageBy, from_ns: i64, until_ns: i64) -> Self {
        let until_ns = until_ns.checked_add(MINUTE_NS - 1).unwrap_or(i64::MAX);
        let (from_ns, until_ns) = (floor(from_ns, MINUTE_NS), floor(until_ns, MINUTE_NS));
        Self { by, from_ns, until_ns, tenant: None, meter: None }
    }

    /// Only of one tenant, of one meter, or of both.
    #[must_use]
    pub fn only(mut self, tenant: Option<&str>, meter: Option<&str>) -> Self {
        self.tenant = tenant.map(str::to_owned);
        self.meter = meter.map(str::to_owned);
        self
    }

    /// From when on, at the start of a minute.
    #[must_use]
    pub fn from_ns(&self) -> i64 {
        self.from_ns
    }

    /// Until when, not included, at the start of a minute.
    #[must_use]
    pub fn until_ns(&self) -> i64 {
        self.until_ns
    }
}

// === impl UsageRow ===

impl UsageRow {
    pub(crate) fn of(
        tenant: Option<String>,
        meter: Option<String>,
        currency: Currency,
        tally: &Tally,
    ) -> Self {
        Self {
            quantity: meter.is_some().then(|| tally.quantity.to_decimal()),
            amount: tally.amount.to_decimal(),
            tenant,
            meter,
            currency,
            records: tally.records,
            fallbacks: tally.fallbacks,
        }
    }
}
