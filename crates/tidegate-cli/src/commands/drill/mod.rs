//! `tidegate drill`: a scenario's load and faults on something real, and whether what was expected came.
//!
//! - `run.rs`: from what was typed to the report; each world has a `run` of its own.
//! - `find.rs`: which scenario, and in which form. `command.rs`: how the same is run again.
//! - `options.rs`: what all worlds need to know.
//! - `page.rs`: where the report goes as a page.
//! - `made.rs`: which faults can be made, and what is judged without the others.
//! - `screen.rs`, `bar.rs`: what is shown while it runs.
//! - `schedule.rs`: how the generator kept to its own.
//! - `gateway/`: scenarios with a gateway.
//! - `record.rs`: the decisions of a gateway that runs, in a file; `lines.rs` cuts what comes.
//! - `executors/`, `pipeline/`: the other worlds.

mod bar;
mod command;
mod executors;
mod find;
mod gateway;
mod lines;
mod made;
mod options;
mod page;
mod pipeline;
mod print;
mod record;
mod run;
mod schedule;
mod screen;
mod stop;

pub use run::run;
