//! Checked tariffs: built from their specifications, indexed by tenant and meter, with quotes and warnings.
//!
//! Uses the calendar, exact arithmetic and tiers. Must not know accounts, records or stores.

mod build;
mod checks;
mod compiled;
mod quote;
mod tariff_index;
mod tariffs;
mod warning;

pub use quote::{Part, Quote};
pub(super) use tariffs::{Candidates, Verdict};
pub use tariffs::{Tariffs, TierKey};
pub use warning::TariffWarning;
