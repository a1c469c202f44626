//! A PostgreSQL database: address, TLS, a connection that comes back, schema migrations, error classes.
//!
//! May use `tokio-postgres` and `rustls`. Must not know the tables of a store.

mod error;
mod link;
mod listener;
mod schema;
mod settings;
mod tls;

pub(crate) use error::store_error;
pub(crate) use link::{Connected, Link, query};
pub(crate) use listener::{Listener, News};
pub(crate) use settings::Settings;
