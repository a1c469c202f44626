//! The simulator in virtual time: scenarios, clients, queues, limits and advice, the pipeline and executors.
//!
//! One binary, because each would link the simulator again. Only what measures its process is apart (`memory.rs`).

mod clients;
mod executors;
mod flaws;
mod gateway;
mod limit;
mod pipeline;
mod pool_queue;
mod queueing;
mod reproducible;
mod retry_after;
mod returns;
mod scenario_files;
mod shedding;
