//! What was used, by whom, and what it costs: the data that the ingestion pipeline carries.

mod names;
mod priced;
mod quantity;
mod record;

pub use names::Names;
pub(crate) use names::text_hash;
pub use priced::{Charge, Currency, Fallback, NotACurrency, PricedRecord};
pub(crate) use quantity::quantity_of_parts;
pub use quantity::{QuantityError, parse_quantity};
pub use record::UsageRecord;
