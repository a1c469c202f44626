//! `tidegate drill`: a scenario's load and faults on something real, and whether what was expected came.
//!
//! - `run.rs`: from what was typed to the report; each world has a `run` of its own.
//! - `find.rs`: which scenario, and in which form. `command.rs`: how the same is run again.
//! - `options.rs`: what all worlds need to know.
//! - `gateway/`: scenarios with a gateway.
//! - `record.rs`: the decisions of a gateway that runs, in a file; `lines.rs` cuts what comes.
//! - `executors.rs`, `pipeline.rs`: the other worlds.

mod bar;
mod command;
mod executors;
mod find;
mod gateway;
mod lines;
mod options;
mod pipeline;
mod print;
mod record;
mod run;
mod stop;

pub use run::run;
