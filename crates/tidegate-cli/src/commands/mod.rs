//! What each command does.

mod banner;
pub mod config;
pub mod mock;
mod signals;
pub mod tariff;
mod tariff_example;
mod tariff_text;
pub mod threshold;
pub mod up;
