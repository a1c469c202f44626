//! Usage records and their charges: the data of the ingestion pipeline.
//!
//! Uses exact decimals alone. Must not know tariffs, frames or stores.

mod names;
mod priced;
mod quantity;
mod record;

pub use names::Names;
pub(crate) use names::text_hash;
pub use priced::{Currency, CurrencyError, Fallback, PricedRecord, UsageCharge};
pub(crate) use quantity::quantity_of_parts;
pub use quantity::{QuantityError, parse_quantity};
pub use record::UsageRecord;
