//! The slots of executors: who has them, who waits for them, and who is placed where.

mod dispatcher;
mod estimate;
mod fleet;
mod line;
mod order;
mod placement;
mod refused;
mod slots;

pub use dispatcher::Dispatcher;
pub use estimate::WaitEstimate;
pub use fleet::{ExecutorBelief, ExecutorId, Fleet};
pub use line::{Place, RuntimeId, Serves, Ticket, WaitingLine};
pub use order::{Answer, LeaseAnswer, Order};
pub use placement::{Placement, UnknownPlacement};
pub use refused::{ExecuteRefused, ReserveRefused};
pub use slots::{Cancelled, ExecutorSlots, Granted, Occupancy, Reservation};
