//! Tasks, managers and executors in virtual time, with the dispatcher and the slots that ship, and the seed's loop
//! for comparison.
//!
//! Every message is delayed and counted. Arrivals and durations are the same for every placement. May use the
//! scenario, arrivals and the report. Must not know commands or files.
//!
//! ```
//! use tidegate_core::capacity::Placement;
//! use tidegate_sim::executors::{ExecutorsScenario, Policy, run};
//!
//! // Three executors of one slot, tasks of 50 ms, at 80 % of what they can do.
//! let report = run(&ExecutorsScenario::steady(Policy::Ours(Placement::Pull), 3, 0.8, 1));
//! assert_eq!(report.wasted, 0);
//! assert!(report.messages_per_task() <= 5.0);
//! ```

mod comparison;
mod dispatch;
mod findings;
mod flaw;
mod fleet;
mod load;
mod measure;
mod report;
mod seed_loop;
mod setup;
mod simulate;
mod steady;

pub use crate::scenario::{Policy, UnknownPolicy};
pub use comparison::{
    PlacementComparison, PlacementFigures, PlacementRow, PlacementsInScenario, compare, compare_in,
};
pub use findings::{PhaseCounts, PlacementRun, Sample, TaskRun, findings};
pub use flaw::ExecutorFlaw;
pub use report::ExecutorsReport;
pub use simulate::{simulate, simulate_flawed};
pub use steady::{Burst, ExecutorsScenario, TaskTime, run};
