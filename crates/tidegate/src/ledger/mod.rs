//! Slot ledgers: leases of executor slots, in this process or shared by several managers.
//!
//! May use `tidegate-core`'s slot ledger, tokio and Redis. Must not know tasks or how they are executed.
//!
//! A [`Ledger`] is [`MemoryLedger`] or, shared by URL, [`RedisLedger`]; [`AnyLedger`] is whichever its address
//! says.

mod any_ledger;
mod changes;
mod error;
mod ledger_trait;
mod ledger_url;
mod memory;
#[cfg(feature = "redis")]
mod redis;

pub use any_ledger::AnyLedger;
pub use error::LedgerError;
pub use ledger_trait::Ledger;
pub use ledger_url::{LedgerUrl, NotALedgerUrl};
pub use memory::MemoryLedger;
#[cfg(feature = "redis")]
pub use redis::RedisLedger;
pub use tidegate_core::capacity::{Acquired, LedgerRefused, SlotLease, SlotLedger, SlotRequest};
