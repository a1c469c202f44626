//! Scenarios of the ingestion pipeline on a real one.
//!
//! - `run.rs`: from the scenario to the report.
//! - `stage.rs`: an ingestion of the drill's own, over a store in a folder of its own.
//! - `paced_store.rs`: what holds that store to its rate, slows it and blocks it.
//! - `load.rs`: records when they are due, whatever the ingestion does; `sender.rs`: one who sends them.
//! - `truth.rs`: what is in the store in the end.

mod load;
mod paced_store;
mod run;
mod schedule;
mod sender;
mod stage;
mod truth;

pub use run::run;
