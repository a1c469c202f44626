//! A store in a PostgreSQL database.

pub(crate) mod error;
pub(crate) mod link;
mod numeric;
mod read;
pub(crate) mod schema;
pub(crate) mod settings;
mod store;
mod tls;
mod write;

pub use store::PostgresStore;
