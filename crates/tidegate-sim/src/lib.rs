//! Scenarios of overload, and a simulator of them in virtual time over the decisions that ship.
//!
//! A [`scenario`] is a file: load, faults and what is expected. Its [`arrivals`] are the same whether it is
//! simulated here or sent to something real, what happens is counted by one [`measure`], and what came of it is
//! one [`report`].
//!
//! What a real gateway decided can be recorded, and [`replay`]ed with other limits.
//!
//! Nothing here waits, reads a clock or draws from outside: the same scenario and seed give the same report,
//! byte for byte.
//!
//! ```
//! use std::time::Duration;
//! use tidegate_core::admission::MessagePriority::{Critical, Low};
//! use tidegate_sim::admission::{AdmissionScenario, run};
//!
//! // 300 of each priority a second, each of which takes a second.
//! let report = run(&AdmissionScenario::steady([300.0; 4], Duration::from_secs(20)));
//! assert_eq!(report.of(Critical).refused_total(), 0);
//! assert!(report.of(Low).refused_total() > 0, "300 are too many for its 200 places");
//! ```

pub mod admission;
mod agenda;
pub mod arrivals;
pub mod catalog;
pub mod executors;
pub mod gateway;
mod markdown;
pub mod measure;
pub mod pipeline;
mod random;
pub mod replay;
pub mod report;
pub mod scenario;
pub mod shell;
pub mod shrink;
mod simulate;
mod violation;

pub use simulate::simulate;
pub use violation::Violation;
