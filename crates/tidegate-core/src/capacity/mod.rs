//! The slots of executors: who has them, who waits for them, and who is placed where.

mod ledger;
mod refused;
mod slot_request;
mod slots;

pub use ledger::SlotLedger;
pub use refused::{ExecuteRefused, LedgerRefused, ReserveRefused};
pub use slot_request::{Acquired, SlotLease, SlotRequest};
pub use slots::{Cancelled, ExecutorSlots, Granted, Occupancy, Reservation};
