//! What each command does.

mod banner;
pub mod config;
pub mod mock;
pub mod send;
mod signals;
pub mod threshold;
pub mod up;
