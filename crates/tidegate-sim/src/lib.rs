//! A deterministic simulator of overload scenarios in virtual time, with the decisions that ship.
//!
//! A [`scenario`] is a file: load, faults and expectations. Its [`arrivals`] are the same in a simulation and in a
//! drill, one [`measure`] counts the requests of both, and both end in one [`report`].
//!
//! The recorded decisions of a real gateway can be [`replay`]ed with other limits.
//!
//! Nothing here waits, reads a clock or uses a global random source: the same scenario and seed give the same
//! report, byte for byte.
//!
//! ```
//! use tidegate_sim::scenario::{Scenario, What};
//!
//! // 300 requests of Low a second that take a second each, with 200 slots.
//! let scenario = Scenario::read("low", r#"
//!     about = "More than Low may have in flight."
//!     duration_s = 20
//!     upstreams = { count = 1, slots = 1000, queue = 1 }
//!     gateway = { limits = { global = 1000, high = 500, normal = 300, low = 200 } }
//!     class = [{ name = "a", priority = "low", per_s = 300, service = { kind = "fixed", ms = 1000 } }]
//! "#)?;
//! let findings = tidegate_sim::simulate(&scenario, 1, None).expect("no invariant breaks");
//! let refused = findings.value(What::RefusedShare, "priority:low", None).unwrap_or(0.0);
//! assert!((0.25..0.4).contains(&refused), "{refused}");
//! # Ok::<(), tidegate_sim::scenario::ScenarioError>(())
//! ```

mod agenda;
pub mod arrivals;
pub mod catalog;
pub mod executors;
pub mod gateway;
pub mod limit;
mod markdown;
pub mod measure;
pub mod pipeline;
mod random;
pub mod replay;
pub mod report;
pub mod returns;
pub mod scenario;
pub mod shell;
pub mod shrink;
mod simulate;
mod violation;

pub use simulate::simulate;
pub use violation::Violation;
