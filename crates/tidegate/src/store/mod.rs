//! Where priced records are kept: durable before they are acknowledged, and counted once however often they
//! are sent.
//!
//! A [`Store`] is a folder of this machine or a PostgreSQL database; [`AnyStore`] is whichever its address says.

// A program that has only one kind of store needs only a part of what they share.
#![cfg_attr(not(all(feature = "fjall", feature = "postgres")), allow(dead_code))]

#[cfg(any(feature = "fjall", feature = "postgres"))]
mod any_store;
mod append;
mod decide;
mod error;
#[cfg(feature = "fjall")]
pub(crate) mod fjall;
pub(crate) mod name;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
mod query;
mod scan;
mod store_trait;
mod store_url;
mod sum;
mod tally;

#[cfg(any(feature = "fjall", feature = "postgres"))]
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
