//! Stores of priced usage records: durable before they are acknowledged, and counted once however often they are
//! sent.
//!
//! May use `storage` and the records of `tidegate-core`. Must not know the pipeline or a connection of a sender.
//!
//! A [`Store`] is a folder of this machine or a PostgreSQL database; [`AnyStore`] is whichever its address says.

// A program that has only one kind of store needs only a part of what they share.
#![cfg_attr(not(all(feature = "fjall", feature = "postgres")), allow(dead_code))]

#[cfg(any(feature = "fjall", feature = "postgres"))]
mod any_store;
mod append;
mod day_sums;
mod decide;
#[cfg(feature = "fjall")]
mod fjall;
mod name;
#[cfg(feature = "postgres")]
mod postgres;
mod query;
mod scan;
mod series;
mod store_trait;
mod sum;
mod tally;

pub use crate::storage::{NotAStoreUrl, StoreError, StoreUrl};
#[cfg(any(feature = "fjall", feature = "postgres"))]
pub use any_store::AnyStore;
pub(crate) use day_sums::is_large;

pub(crate) use append::CLIENT_SOURCE;
pub use append::{Appended, BatchRefusal, Origin, PricedBatch, Unstored};
#[cfg(feature = "fjall")]
pub use fjall::FjallStore;
pub use name::NAME_BYTES_MAX;
#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;
pub use query::{UsageBy, UsageCursor, UsagePage, UsageQuery, UsageRow};
pub use scan::Records;
pub use series::SeriesLimits;
pub use store_trait::Store;
