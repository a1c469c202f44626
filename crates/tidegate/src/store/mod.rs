//! Where priced records are kept: durable before they are acknowledged, and counted once however often they
//! are sent.

mod append;
mod error;
mod query;
mod store_trait;

pub use append::{Appended, Origin, PricedBatch, Unstored};
pub use error::StoreError;
pub use query::{UsageBy, UsageQuery, UsageRow};
pub use store_trait::Store;
