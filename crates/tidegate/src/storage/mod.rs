//! The storage engines that usage records and tasks share: a fjall folder and a PostgreSQL database.
//!
//! May use the engines' drivers. Must not know records, tasks or any other content of a store.

// A program with one kind of store needs only a part of what they share.
#![cfg_attr(not(all(feature = "fjall", feature = "postgres")), allow(dead_code))]

mod error;
#[cfg(feature = "fjall")]
pub(crate) mod fjall;
pub(crate) mod name;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
mod store_url;

pub use error::StoreError;
pub use store_url::{NotAStoreUrl, StoreUrl};
