//! Where priced records are kept: durable before they are acknowledged, and counted once however often they
//! are sent.
//!
//! A [`Store`] is a folder of this machine or a PostgreSQL database; [`AnyStore`] is whichever its address says.

mod any_store;
mod append;
mod decide;
mod error;
#[cfg(feature = "fjall")]
mod fjall;
mod name;
#[cfg(feature = "postgres")]
mod postgres;
mod query;
mod scan;
mod store_trait;
mod store_url;
mod sum;
mod tally;

pub use any_store::AnyStore;
pub use append::{Appended, Origin, PricedBatch, Refused, Unstored};
pub use error::StoreError;
#[cfg(feature = "fjall")]
pub use fjall::FjallStore;
pub use name::NAME_BYTES_MAX;
#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;
pub use query::{UsageBy, UsageQuery, UsageRow};
pub use scan::Records;
pub use store_trait::Store;
pub use store_url::{NotAStoreUrl, StoreUrl};
