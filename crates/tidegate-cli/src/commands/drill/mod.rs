//! `tidegate drill`: a scenario's load and faults on a real system, and a verdict on its expectations.
//! May use: the server, the simulator's scenarios and reports, the testkit, `scenario_file`, `shutdown`.
//! Must not know: other commands.

mod command;
mod executors;
mod feasible_faults;
mod flags;
mod gateway;
mod options;
mod page;
mod pipeline;
mod progress;
mod record;
mod run;
mod scenario;
mod schedule;
mod stop;

pub use flags::{DrillFlags, EXAMPLES};
pub use run::run;
