use super::{LocalTime, Period};
use crate::usage::Currency;
use rust_decimal::Decimal;
use std::fmt;

/// A tariff as it is written down, before it is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TariffSpec {
    /// Its name, which charges bear.
    pub name: String,
    /// Who pays by it.
    pub tenants: Tenants,
    /// What it prices: a meter's name, `tokens.*` for all meters below one, or `*` for all.
    pub meter: String,
    /// In what money.
    pub currency: Currency,
    /// For how many units its prices are.
    pub per: u64,
    /// Whose clocks and calendar its dates, hours and periods mean: an IANA name.
    pub time_zone: String,
    /// From when on it holds; without it, always has.
    pub effective_from: Option<LocalTime>,
    /// Until when, not included; without it, for ever.
    pub effective_until: Option<LocalTime>,
    /// The price in all hours that are in no window; without it they have none.
    pub price: Option<PriceSpec>,
    /// Hours with prices of their own. No two may have an hour in common.
    pub windows: Vec<WindowSpec>,
    /// Over what tiers add up; needed with tiers.
    pub period: Option<Period>,
}

/// Who pays by a tariff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tenants {
    /// Everyone who has no tariff of their own.
    All,
    /// These.
    Listed(Vec<String>),
}

/// One price, or a price for each tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PriceSpec {
    /// The same however much is used.
    Flat(Decimal),
    /// From the first unit of a period on. When the last one has an end, what is beyond has no price.
    Tiers(Vec<TierSpec>),
}

/// A price up to some quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TierSpec {
    /// Up to how many units in the period, included; the last tier may go on without end.
    pub up_to: Option<Decimal>,
    /// The price of those beyond the tier before.
    pub price: Decimal,
}

/// Hours of some days of the week with a price of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowSpec {
    /// Its name, for people.
    pub name: String,
    /// On which days it begins.
    pub days: Days,
    /// At which minute of the day, 0 … 1439.
    pub from_minute: u16,
    /// Until which minute, not included, 0 … 1440; when it is not after `from_minute`, on the day after.
    pub to_minute: u16,
    /// What it costs then.
    pub price: PriceSpec,
}

/// A set of days of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Days(u8);

/// How usage is priced that no tariff fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FallbackSpec {
    /// The name that charges bear.
    pub name: String,
    /// The price of one unit.
    pub price: Decimal,
    /// In what money.
    pub currency: Currency,
}

// === impl PriceSpec ===

impl PriceSpec {
    /// Its tiers; a single price is one tier without end.
    #[must_use]
    pub fn tiers(&self) -> Vec<TierSpec> {
        match self {
            Self::Flat(price) => vec![TierSpec { up_to: None, price: *price }],
            Self::Tiers(tiers) => tiers.clone(),
        }
    }
}

// === impl Days ===

impl Days {
    /// The days' names, from Monday on.
    pub const NAMES: [&'static str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    /// Every day.
    pub const ALL: Self = Self(0b111_1111);
    /// None.
    pub const NONE: Self = Self(0);
    /// Monday to Friday.
    pub const WEEKDAYS: Self = Self(0b001_1111);
    /// Saturday and Sunday.
    pub const WEEKEND: Self = Self(0b110_0000);

    /// These days and another one, 0 for Monday to 6 for Sunday; any other number changes nothing.
    #[must_use]
    pub const fn with(self, day: u8) -> Self {
        if day < 7 { Self(self.0 | 1 << day) } else { self }
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The days' numbers.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..7).filter(move |day| self.0 & 1 << day != 0)
    }
}

impl fmt::Display for Days {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ALL => f.write_str("every day"),
            Self::WEEKDAYS => f.write_str("mon-fri"),
            Self::WEEKEND => f.write_str("sat-sun"),
            some => {
                let names: Vec<_> = some.iter().map(|day| Self::NAMES[usize::from(day)]).collect();
                f.write_str(&names.join(","))
            }
        }
    }
}

// === impl FallbackSpec ===

impl Default for FallbackSpec {
    /// Free, in US dollars, under the name `fallback`.
    fn default() -> Self {
        Self { name: "fallback".to_owned(), price: Decimal::ZERO, currency: Currency::USD }
    }
}
