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
mod ledger;
mod load;
mod managers;
mod measure;
mod policy;
mod report;
mod scenario;
mod seed_loop;
mod slots;
mod table;

pub use compare::{PlacementComparison, PlacementRow, compare};
pub use policy::{Policy, UnknownPolicy};
pub use report::ExecutorsReport;
pub use scenario::{Burst, ExecutorsScenario, TaskTime, run};
