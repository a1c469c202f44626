//! What each command does.

mod banner;
pub mod config;
pub mod up;
