//! Drills of scenarios with executors: each placement runs on its own manager and executors, over HTTP.
//! May use: the drill's options, progress and schedule; the server; the testkit.
//! Must not know: the gateway and pipeline drills.

mod fault_injector;
mod node;
mod pool;
mod progress;
mod run;
mod seed_loop;
mod submissions;
mod times;

pub use run::run;
