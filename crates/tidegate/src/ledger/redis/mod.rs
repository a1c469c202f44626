//! The ledger that several managers share: a Redis, or a Valkey.

mod error;
mod ledger;
mod link;
mod scripts;
mod settings;

pub use ledger::RedisLedger;
