//! Slots of executors: leases, reservations, the queue for them, and the selection of an executor.
//!
//! Uses `admission` for priorities and `task` for keys. Must not know clocks, connections or stores.

mod claims;
mod dispatcher;
mod estimate;
mod fleet;
mod ledger;
mod ledger_limits;
mod order;
mod placement;
mod refused;
mod slot_request;
mod slots;
mod wait_queue;

pub use claims::{ClaimPlan, Claims, SlotGroup};
pub use dispatcher::Dispatcher;
pub use estimate::WaitEstimate;
pub use fleet::{ExecutorId, ExecutorState, Fleet};
pub use ledger::SlotLedger;
pub use order::{ExecutorAnswer, LeaseAnswer, Order};
pub use placement::{Placement, UnknownPlacement};
pub use refused::{ExecuteRefused, LedgerRefused, ReserveRefused};
pub use slot_request::{Acquired, SlotLease, SlotRequest};
pub use slots::{Cancelled, ExecutorSlots, Granted, Occupancy, Reservation};
pub use wait_queue::{ExecutorRuntimes, QueuePosition, RuntimeId, Ticket, WaitQueue};
