//! Every state that a small world of managers and executors can reach, over the shipped `ExecutorSlots`,
//! `TaskState` and `SlotLedger`; and the same search over worlds that are broken on purpose, to show that it finds
//! what it looks for.

mod executor;
mod manager;
mod protocol;
mod search;
mod semaphore;
mod world;
