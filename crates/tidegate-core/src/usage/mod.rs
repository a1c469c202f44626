//! What was used, by whom, and what it costs: the data that the ingestion pipeline carries.

mod priced;
mod record;

pub use priced::{Charge, Currency, Fallback, NotACurrency, PricedRecord};
pub use record::UsageRecord;
