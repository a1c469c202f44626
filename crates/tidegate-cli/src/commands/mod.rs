//! What each command does.

mod banner;
pub mod config;
pub mod drill;
pub mod ingest;
pub mod mock;
mod moment;
mod scenario_file;
pub mod send;
mod signals;
pub mod sim;
mod table;
pub mod tariff;
mod tariff_example;
mod tariff_text;
pub mod tasks;
pub mod threshold;
mod until_signal;
pub mod up;
pub mod usage;
pub mod worker;
