//! What each command does.

mod banner;
pub mod config;
pub mod ingest;
pub mod mock;
mod moment;
mod signals;
pub mod threshold;
mod until_signal;
pub mod up;
pub mod usage;
