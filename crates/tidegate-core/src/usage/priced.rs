use super::UsageRecord;
use rust_decimal::Decimal;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Usage record with its charge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PricedRecord {
    /// Usage record.
    pub record: UsageRecord,
    /// UsageCharge of the record.
    pub charge: UsageCharge,
}

/// UsageCharge of a record, and its tariff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageCharge {
    /// Amount, never rounded: sums are rounded for display only.
    pub amount: Decimal,
    /// Currency of the amount.
    pub currency: Currency,
    /// Name of the tariff, or of the fallback if no tariff applies.
    pub tariff: Arc<str>,
    /// Reason if no tariff applies.
    pub fallback: Option<Fallback>,
}

/// Reason why a record was priced by the fallback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Fallback {
    /// No tariff names this meter for this tenant.
    UnknownMeter = 1,
    /// Tariffs exist, but none is in effect at that time.
    NotInEffect = 2,
    /// A tariff is in effect, but has no price for that hour of that day.
    NoWindow = 3,
    /// The price does not fit in a decimal number.
    OutOfRange = 4,
    /// A tariff is in effect, but a part of the quantity is beyond its last tier. The rest, if any, was priced by
    /// that tariff, which the charge names.
    NoTier = 5,
}

/// Currency code: three capital letters, as in ISO 4217.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency([u8; 3]);

/// Error for text that is no currency code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurrencyError {
    /// Text that was given.
    pub given: String,
}

// === impl Fallback ===

impl Fallback {
    /// Every reason.
    pub const ALL: [Self; 5] =
        [Self::UnknownMeter, Self::NotInEffect, Self::NoWindow, Self::OutOfRange, Self::NoTier];

    /// Name in labels, responses and logs.
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

    /// Number in stores; 0 means none.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Reason of a number in stores.
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
    /// The last one in the order of codes.
    pub const LAST: Self = Self(*b"ZZZ");

    /// US dollar, the default.
    pub const USD: Self = Self(*b"USD");

    /// Three letters.
    #[must_use]
    pub fn code(&self) -> &str {
        // ASCII letters only, so never empty.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl FromStr for Currency {
    type Err = CurrencyError;

    fn from_str(given: &str) -> Result<Self, CurrencyError> {
        match given.as_bytes() {
            &[a, b, c] if [a, b, c].iter().all(u8::is_ascii_uppercase) => Ok(Self([a, b, c])),
            _ => Err(CurrencyError { given: given.to_owned() }),
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

// === impl CurrencyError ===

impl fmt::Display for CurrencyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a currency: use three capital letters, such as EUR", self.given)
    }
}

impl std::error::Error for CurrencyError {}

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
