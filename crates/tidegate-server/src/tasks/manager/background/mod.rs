//! Background calls: tokio tasks that wait for the store, the slot ledger or an executor, and report by an event.
//! Uses `event`, `persistence`, `link`, the store and the slot ledger.
//! Must not know the manager's state.

mod executor_calls;
mod ledger_calls;
mod shared_queue;
mod store_calls;
mod unbroken_beats;

pub use executor_calls::ExecutorCalls;
pub use ledger_calls::LedgerCalls;
pub use store_calls::StoreCalls;
