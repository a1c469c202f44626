//! Files that an operator may have from elsewhere.

pub mod config;
pub mod recording;
pub mod scenario;
pub mod tariff;
