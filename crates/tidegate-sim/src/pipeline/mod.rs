//! The ingestion pipeline in virtual time, with the scheduler that ships.
//!
//! May use the windows of `tidegate-core`, the scenario, arrivals and the report. Must not know commands or files.
//!
//! Five stages, each with the window of its channel: a sender without a credit waits, and nothing is dropped.
//! Service times are drawn, the load has a shape, and a fault can block or slow down a stage. [`simulate`] runs a
//! scenario file and checks the invariants at every step; [`run`] compares laws. A drill of the same file uses the
//! same [`FlowRecorder`].
//!
//! ```
//! use std::time::Duration;
//! use tidegate_core::window::Law;
//! use tidegate_sim::pipeline::{PipelineScenario, run};
//!
//! // Twice what Store can do.
//! let report = run(&PipelineScenario::overloaded(Law::Cubic, Duration::from_secs(40)))?;
//! assert_eq!(report.offered, report.delivered + report.held + report.unsent, "nothing is dropped");
//! assert!(report.in_band > 0.9);
//! # Ok::<(), tidegate_core::window::WindowConfigError>(())
//! ```

mod audit;
mod channel;
mod compare;
mod convergence;
mod flow;
mod laws;
mod load;
mod measure;
mod model;
mod report;
mod scenario;
mod server;
mod simulate;
mod stages;
mod table;

pub use compare::{Comparison, Row, compare};
pub use flow::{FlowPicture, FlowRecorder};
pub use laws::{LawComparison, LawRow, compare_in};
pub use load::Load;
pub use model::run;
pub use report::{PipelineReport, Tick};
pub use scenario::{Fault, FaultKind, PipelineScenario, Spread, StageModel};
pub use simulate::simulate;
