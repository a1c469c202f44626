//! The manager's thread: it alone knows every task that is not over, and decides.
//! Uses `background` and `attempt` for everything that waits; they report by an `Event`.
//! Must not wait for a store, a ledger or an executor.

mod actor;
mod claiming;
mod commands_in;
mod dispatch;
mod events_in;
mod executor_registry;
mod lease_book;
mod leasing;
mod runtime_ids;
mod schedule;
mod shared_queue;
mod task_book;
mod task_queue;
mod workers;

pub use actor::{Actor, StopPhase};
