//! Tasks in a PostgreSQL database.

mod adopt;
mod count;
mod group;
mod keep;
mod read;
mod store;
mod submit;
mod writer;

pub use store::PostgresTaskStore;
