//! Admission alone: messages arrive, the tracker admits or refuses them, the admitted ones take their time, and
//! refused clients come back when the advisor said.

mod event;
mod places;
mod report;
mod scenario;
mod simulation;
mod waits;

pub use report::{PriorityReport, Report, WaitQuantiles};
pub use scenario::{AdmissionScenario, Phase, ServiceTime};
pub use simulation::run;
