//! Tariffs: prices of usage by tenant, meter, hour, tier and date, in exact decimal numbers.
//!
//! [`Tariffs`] are built once from [`TariffSpec`]s and never change; an [`Evaluator`] prices records by them and
//! tracks each tenant's usage in the current period, on which tiers depend. Nothing is rounded: a price that is
//! not exact is refused when the tariffs are built, and an amount that does not fit in a decimal number is a
//! visible [fallback](crate::usage::Fallback), as is every gap.
//!
//! Uses `usage` for records and charges. Must not know files, stores or the current time.

mod accounts;
mod calendar;
mod error;
mod evaluator;
mod exact;
mod spec;
mod tariff_set;
mod tiers;

pub use accounts::{ACCOUNT_KEYS_DEFAULT, AccountCacheStats};
pub use calendar::{
    Days, LocalTime, Period, TimeParseError, UnknownZone, time_ns, time_text, zone_names,
};
pub use error::{Location, TariffError};
pub use evaluator::Evaluator;
pub use spec::{FallbackSpec, PriceSpec, TariffSpec, Tenants, TierSpec, WindowSpec};
pub use tariff_set::{Part, Quote, TariffWarning, Tariffs, TierKey};
