//! The layers that give values: the TOML file and the environment.
//! Uses the table, its schema and errors.
//! Must not know single settings, nor the configuration that comes of them.

mod env;
mod file;

pub use env::read as read_env;
pub use file::{read as read_file, unknown_key};
