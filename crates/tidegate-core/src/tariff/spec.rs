use super::calendar::{Days, LocalTime, Period};
use crate::usage::Currency;
use rust_decimal::Decimal;

/// Tariff as written, before it is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TariffSpec {
    /// Name, used in charges.
    pub name: String,
    /// Tenants it applies to.
    pub tenants: Tenants,
    /// Meter: a name, `tokens.*` for all meters below one, or `*` for all.
    pub meter: String,
    /// Currency of its prices.
    pub currency: Currency,
    /// Number of units that a price is for.
    pub per: u64,
    /// IANA time zone of its dates, hours and periods.
    pub time_zone: String,
    /// Start of its validity; unbounded if absent.
    pub effective_from: Option<LocalTime>,
    /// End of its validity, exclusive; unbounded if absent.
    pub effective_until: Option<LocalTime>,
    /// Price outside of all windows; if absent, those hours have none.
    pub price: Option<PriceSpec>,
    /// Hours with their own prices. Windows must not overlap.
    pub windows: Vec<WindowSpec>,
    /// Period of the tiers; required with tiers.
    pub period: Option<Period>,
}

/// Tenants of a tariff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tenants {
    /// All tenants without a tariff of their own.
    All,
    /// These tenants.
    Listed(Vec<String>),
}

/// One price, or a price for each tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PriceSpec {
    /// One price for any quantity.
    Flat(Decimal),
    /// Tiers from the first unit of a period. If the last one is bounded, there is no price beyond it.
    Tiers(Vec<TierSpec>),
}

/// Price up to a quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TierSpec {
    /// Upper bound in units per period, inclusive; the last tier may be unbounded.
    pub up_to: Option<Decimal>,
    /// Price of the units above the tier before.
    pub price: Decimal,
}

/// Hours on some days of the week with their own price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowSpec {
    /// Name for people.
    pub name: String,
    /// Days on which it begins.
    pub days: Days,
    /// First minute of the day, 0 … 1439.
    pub from_minute: u16,
    /// End minute, exclusive, 0 … 1440; if not after `from_minute`, on the next day.
    pub to_minute: u16,
    /// Price in the window.
    pub price: PriceSpec,
}

/// Price of usage without a tariff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FallbackSpec {
    /// Name, used in charges.
    pub name: String,
    /// Price of one unit.
    pub price: Decimal,
    /// Currency of the price.
    pub currency: Currency,
}

// === impl PriceSpec ===

impl PriceSpec {
    /// Tiers; a flat price is one unbounded tier.
    #[must_use]
    pub fn tiers(&self) -> Vec<TierSpec> {
        match self {
            Self::Flat(price) => vec![TierSpec { up_to: None, price: *price }],
            Self::Tiers(tiers) => tiers.clone(),
        }
    }
}

// === impl FallbackSpec ===

impl Default for FallbackSpec {
    /// Free, in US dollars, named `fallback`.
    fn default() -> Self {
        Self { name: "fallback".to_owned(), price: Decimal::ZERO, currency: Currency::USD }
    }
}
