use super::UsageRecord;
use rust_decimal::Decimal;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// A record and what it costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PricedRecord {
    /// What was used.
    pub record: UsageRecord,
    /// What it costs.
    pub charge: Charge,
}

/// What a record costs, and by which tariff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The price, never rounded: sums are rounded where they are shown.
    pub amount: Decimal,
    /// In what money.
    pub currency: Currency,
    /// The tariff's name; that of the fallback when no tariff fits.
    pub tariff: Arc<str>,
    /// Why no tariff fits, when none does.
    pub fallback: Option<Fallback>,
}

/// Why a record was priced by the fallback and not by a tariff.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Fallback {
    /// No tariff names this meter for this tenant.
    UnknownMeter = 1,
    /// Tariffs name it, but none is in effect at that time.
    NotInEffect = 2,
    /// One is in effect, but has no price for that hour of that day.
    NoWindow = 3,
    /// The price does not fit in a decimal number.
    OutOfRange = 4,
    /// One is in effect, but a part of the quantity is beyond its last tier. The rest of it, if any, was priced
    /// by that tariff, whose name the charge bears.
    NoTier = 5,
}

/// Three capital letters, as in ISO 4217.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency([u8; 3]);

/// A word that can't be a currency's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotACurrency {
    /// What was given.
    pub given: String,
}

// === impl Fallback ===

impl Fallback {
    /// Every reason.
    pub const ALL: [Self; 5] =
        [Self::UnknownMeter, Self::NotInEffect, Self::NoWindow, Self::OutOfRange, Self::NoTier];

    /// The name used in labels, answers and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::UnknownMeter => "unknown_meter",
            Self::NotInEffect => "not_in_effect",
            Self::NoWindow => "no_window",
            Self::OutOfRange => "out_of_range",
            Self::NoTier => "no_tier",
        }
    }

    /// The number that stands for it in stores; 0 stands for none.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// What a number in a store stands for.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|fallback| fallback.code() == code)
    }
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

// === impl Currency ===

impl Currency {
    /// The US dollar, where nothing says otherwise.
    pub const USD: Self = Self(*b"USD");

    /// Its three letters.
    #[must_use]
    pub fn code(&self) -> &str {
        // Made of ASCII letters only, so this is never empty.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl FromStr for Currency {
    type Err = NotACurrency;

    fn from_str(given: &str) -> Result<Self, NotACurrency> {
        match given.as_bytes() {
            &[a, b, c] if [a, b, c].iter().all(u8::is_ascii_uppercase) => Ok(Self([a, b, c])),
            _ => Err(NotACurrency { given: given.to_owned() }),
        }
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

// === impl NotACurrency ===

impl fmt::Display for NotACurrency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no currency: expected three capital letters, such as EUR", self.given)
    }
}

impl std::error::Error for NotACurrency {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_currency_is_three_capital_letters() {
        assert_eq!("EUR".parse::<Currency>().unwrap().code(), "EUR");
        for wrong in ["", "eur", "EU", "EURO", "E1R", "ÉU"] {
            assert_eq!(wrong.parse::<Currency>().unwrap_err().given, wrong);
        }
    }

    #[test]
    fn a_fallback_survives_its_code() {
        for fallback in Fallback::ALL {
            assert_eq!(Fallback::from_code(fallback.code()), Some(fallback));
        }
        assert_eq!(Fallback::from_code(0), None);
    }
}
