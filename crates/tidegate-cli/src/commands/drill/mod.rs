//! `tidegate drill`: a scenario's load and faults on something real, and whether what was expected came.
//!
//! - `run.rs`: from what was typed to the report; each world has a `run` of its own.
//! - `find.rs`: which scenario.
//! - `options.rs`: what all worlds need to know.
//! - `gateway/`: scenarios with a gateway.
//! - `executors.rs`, `pipeline.rs`: the other worlds.

mod bar;
mod executors;
mod find;
mod gateway;
mod options;
mod pipeline;
mod print;
mod run;
mod stop;

pub use run::run;
