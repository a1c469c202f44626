//! A store in a PostgreSQL database.

mod error;
mod link;
mod numeric;
mod read;
mod schema;
mod settings;
mod store;
mod tls;
mod write;

pub use store::PostgresStore;
