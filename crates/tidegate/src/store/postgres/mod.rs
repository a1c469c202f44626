//! A store in a PostgreSQL database.

mod numeric;
mod read;
mod series;
mod store;
mod write;

pub use store::PostgresStore;
