//! What each command does.

mod banner;
pub mod config;
pub mod mock;
mod signals;
pub mod sim;
pub mod threshold;
pub mod up;
