//! The slots of executors: who has them, who waits for them, and who is placed where.

mod dispatcher;
mod estimate;
mod fleet;
mod ledger;
mod line;
mod order;
mod placement;
mod refused;
mod slot_request;
mod slots;

pub use dispatcher::Dispatcher;
pub use estimate::WaitEstimate;
pub use fleet::{ExecutorBelief, ExecutorId, Fleet};
pub use ledger::SlotLedger;
pub use line::{Place, RuntimeId, Serves, Ticket, WaitingLine};
pub use order::{Answer, LeaseAnswer, Order};
pub use placement::{Placement, UnknownPlacement};
pub use refused::{ExecuteRefused, LedgerRefused, ReserveRefused};
pub use slot_request::{Acquired, SlotLease, SlotRequest};
pub use slots::{Cancelled, ExecutorSlots, Granted, Occupancy, Reservation};
