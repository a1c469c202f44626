//! Drills of scenarios with a gateway.

mod run;

pub use run::run;
