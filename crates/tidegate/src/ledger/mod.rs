//! Who holds the slots of executors: in this process, or among several managers that share them.

mod error;
mod ledger_trait;

pub use error::LedgerError;
pub use ledger_trait::{Acquired, Ledger, SlotLease, SlotRequest};
