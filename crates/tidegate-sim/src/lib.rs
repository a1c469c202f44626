//! A simulator of overload, in virtual time, over the decisions that ship.
//!
//! Messages arrive, the tracker of `tidegate-core` admits or refuses them, the admitted ones take their time,
//! and refused clients come back when the advisor said. Nothing here waits, reads a clock or draws from
//! outside: the same [`Scenario`] gives the same [`Report`], byte for byte.
//!
//! ```
//! use std::time::Duration;
//! use tidegate_core::admission::MessagePriority::{Critical, Low};
//! use tidegate_sim::{Scenario, run};
//!
//! // 300 of each priority a second, each of which takes a second.
//! let report = run(&Scenario::steady([300.0; 4], Duration::from_secs(20)));
//! assert_eq!(report.of(Critical).refused_total(), 0);
//! assert!(report.of(Low).refused_total() > 0, "300 are too many for its 200 places");
//! ```

mod agenda;
pub mod executors;
mod markdown;
pub mod pipeline;
mod places;
mod random;
mod report;
mod scenario;
mod simulation;
mod waits;

pub use report::{PriorityReport, Report, WaitQuantiles};
pub use scenario::{Phase, Scenario, ServiceTime};
pub use simulation::run;
