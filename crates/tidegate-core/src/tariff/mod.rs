//! What usage costs: tariffs by tenant and meter, with hours, tiers and dates, in exact decimal numbers.
//!
//! [`Tariffs`] are built once from [`TariffSpec`]s and never change; an [`Evaluator`] prices records by them and
//! keeps how much each tenant has used in the running period, which is what tiers depend on. Nothing is rounded:
//! a price that does not come out exactly is refused when the tariffs are built, and an amount that does not fit
//! in a decimal number is a visible [fallback](crate::usage::Fallback), as is every gap.

mod account;
mod book;
mod build;
mod checks;
mod evaluator;
mod exact;
mod lanes;
mod mistake;
mod period;
mod quote;
mod segment;
mod spec;
mod sums;
mod tariff_set;
mod tiers;
mod time_text;
mod warning;
mod week;
mod zone;

pub use book::{BOOK_KEYS_DEFAULT, BookStats};
pub use evaluator::Evaluator;
pub use mistake::{Place, TariffMistake};
pub use period::Period;
pub use quote::{Part, Quote};
pub use spec::{Days, FallbackSpec, PriceSpec, TariffSpec, Tenants, TierSpec, WindowSpec};
pub use tariff_set::{Tariffs, TierKey};
pub use time_text::{LocalTime, NotATime, time_ns, time_text};
pub use warning::TariffWarning;
pub use zone::{NotAZone, zone_names};
