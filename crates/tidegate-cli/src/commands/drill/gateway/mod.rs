//! Drills of scenarios with a gateway.
//!
//! - `run.rs`: all of it together.
//! - `stage.rs`, `settings.rs`: the gateway and the workers that a drill starts for itself.
//! - `load.rs`: which request when, and what its answer means for the book; `answers.rs` reads answers.
//! - `requests.rs`: what a request of each class looks like.
//! - `faults.rs`: makes workers fail when the scenario says so, by `ask.rs`.
//! - `live.rs`: what is shown while it runs.

mod answers;
mod ask;
mod faults;
mod live;
mod load;
mod requests;
mod run;
mod settings;
mod stage;

pub use run::run;
