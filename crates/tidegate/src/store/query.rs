use super::tally::{MINUTE_NS, Tally, floor};
use rust_decimal::Decimal;
use serde::Serialize;
use tidegate_core::usage::Currency;

/// Rows of a page, unless another number is asked for: about 300 KB.
const PAGE_ROWS: usize = 1_000;

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
    /// Only what this client's token delivered; empty for what came without a token.
    pub client: Option<String>,
    /// Only what follows this row.
    pub after: Option<UsageCursor>,
    /// The most rows of a page; at least one. Default 1,000.
    pub limit: usize,
}

/// Position of a row in the order of rows: its names and its currency.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UsageCursor {
    /// The tenant; `None` in a sum over tenants.
    pub tenant: Option<String>,
    /// The meter; `None` when not asked for by meter.
    pub meter: Option<String>,
    /// The client; `None` when not asked for by client.
    pub client: Option<String>,
    /// The currency.
    pub currency: Currency,
}

/// Some of the rows that a query asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsagePage {
    /// The rows, in the order of their names. There may be none although others follow.
    pub rows: Vec<UsageRow>,
    /// Where the next page begins; `None` after the last one.
    pub next: Option<UsageCursor>,
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
    /// Each client whose token delivered records, and currency.
    Client,
}

/// A sum of usage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRow {
    /// The tenant; `None` in a sum over tenants.
    pub tenant: Option<String>,
    /// Of what; `None` when not asked for by meter.
    pub meter: Option<String>,
    /// Name of the client whose token delivered the records, empty for those without a token; `None` when not
    /// asked for by client.
    pub client: Option<String>,
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
    /// True if a sum is beyond what a decimal number holds: then the largest one stands for it.
    pub overflow: bool,
}

// === impl UsageQuery ===

impl UsageQuery {
    /// All usage from one time up to another, the first rounded down and the second up to a whole minute.
    #[must_use]
    pub fn new(by: UsageBy, from_ns: i64, until_ns: i64) -> Self {
        let until_ns = until_ns.checked_add(MINUTE_NS - 1).unwrap_or(i64::MAX);
        let (from_ns, until_ns) = (floor(from_ns, MINUTE_NS), floor(until_ns, MINUTE_NS));
        let (tenant, meter, client, after, limit) = (None, None, None, None, PAGE_ROWS);
        Self { by, from_ns, until_ns, tenant, meter, client, after, limit }
    }

    /// Only of one tenant, of one meter, or of both.
    #[must_use]
    pub fn only(mut self, tenant: Option<&str>, meter: Option<&str>) -> Self {
        self.tenant = tenant.map(str::to_owned);
        self.meter = meter.map(str::to_owned);
        self
    }

    /// Only what one client's token delivered; empty for what came without a token.
    #[must_use]
    pub fn of_client(mut self, client: Option<&str>) -> Self {
        self.client = client.map(str::to_owned);
        self
    }

    /// A page of at most `limit` rows that follow a row.
    #[must_use]
    pub fn page(mut self, after: Option<UsageCursor>, limit: usize) -> Self {
        (self.after, self.limit) = (after, limit.max(1));
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
    /// Its position in the order of rows.
    #[must_use]
    pub fn cursor(&self) -> UsageCursor {
        let (tenant, meter) = (self.tenant.clone(), self.meter.clone());
        UsageCursor { tenant, meter, client: self.client.clone(), currency: self.currency }
    }

    /// Adds another row's sums in the same currency. Its names are left out.
    pub fn add(&mut self, other: &Self) {
        let mut sum = |one: Decimal, two: Decimal| {
            one.checked_add(two).unwrap_or_else(|| {
                self.overflow = true;
                Decimal::MAX
            })
        };
        self.amount = sum(self.amount, other.amount);
        self.quantity = self.quantity.zip(other.quantity).map(|(one, two)| sum(one, two));
        self.overflow |= other.overflow;
        self.records = self.records.saturating_add(other.records);
        self.fallbacks = self.fallbacks.saturating_add(other.fallbacks);
    }

    pub(crate) fn of(
        (tenant, meter, client): (Option<String>, Option<String>, Option<String>),
        currency: Currency,
        tally: &Tally,
    ) -> Self {
        Self {
            overflow: tally.amount.overflows() || (meter.is_some() && tally.quantity.overflows()),
            quantity: meter.is_some().then(|| tally.quantity.to_decimal()),
            amount: tally.amount.to_decimal(),
            tenant,
            meter,
            client,
            currency,
            records: tally.records,
            fallbacks: tally.fallbacks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_add_up_and_mark_what_does_not_fit() {
        let row = |amount: Decimal| UsageRow {
            tenant: None,
            meter: None,
            client: None,
            currency: Currency::USD,
            records: 2,
            fallbacks: 1,
            quantity: None,
            amount,
            overflow: false,
        };
        let mut sum = row(Decimal::ONE);
        sum.add(&row(Decimal::TWO));
        assert_eq!((sum.records, sum.fallbacks, sum.amount), (4, 2, 3.into()));
        assert!(!sum.overflow && sum.quantity.is_none());
        sum.add(&row(Decimal::MAX));
        assert!(sum.overflow && sum.amount == Decimal::MAX);
    }
}
