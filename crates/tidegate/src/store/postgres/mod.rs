//! A store in a PostgreSQL database.

mod numeric;
mod read;
mod store;
mod write;

pub use store::PostgresStore;
