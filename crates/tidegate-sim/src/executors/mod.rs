//! Tasks, a manager and executors in virtual time, under the dispatcher and the slots that ship; and the loop of
//! the seed beside them.
//!
//! Every message takes its time, and each is counted. Arrivals and how long tasks take are the same under every
//! placement, so that what differs is the placement.
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

mod compare;
mod crew;
mod driver;
mod findings;
mod flaw;
mod ledger;
mod lives;
mod load;
mod manager;
mod managers;
mod measure;
mod message;
mod policy;
mod report;
mod rules;
mod scenario;
mod seed_loop;
mod setup;
mod side_by_side;
mod simulate;
mod table;
mod wire;

pub use compare::{PlacementComparison, PlacementRow, compare};
pub use findings::{PhaseCounts, PlacementRun, Sample, TaskRun, findings};
pub use flaw::ExecutorFlaw;
pub use policy::{Policy, UnknownPolicy};
pub use report::ExecutorsReport;
pub use scenario::{Burst, ExecutorsScenario, TaskTime, run};
pub use side_by_side::{PlacementFigures, PlacementsInScenario, compare_in};
pub use simulate::{simulate, simulate_flawed};
