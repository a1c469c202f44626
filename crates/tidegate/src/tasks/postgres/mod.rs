//! Tasks in a PostgreSQL database.

mod adopt;
mod claim;
mod count;
mod group;
mod hand_over;
mod hints;
mod read;
mod request;
mod step;
mod store;
mod submit;
mod transaction;
mod writer;

pub use store::PostgresTaskStore;
