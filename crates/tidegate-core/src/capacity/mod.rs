//! The slots of executors: who has them, who waits for them, and who is placed where.

mod refused;
mod slots;

pub use refused::{ExecuteRefused, ReserveRefused};
pub use slots::{Cancelled, ExecutorSlots, Granted, Occupancy, Reservation};
