//! Tasks in a PostgreSQL database.

mod adopt;
mod count;
mod group;
mod read;
mod request;
mod step;
mod store;
mod submit;
mod transaction;
mod writer;

pub use store::PostgresTaskStore;
