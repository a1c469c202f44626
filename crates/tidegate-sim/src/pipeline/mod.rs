//! The ingestion pipeline in virtual time, under the scheduler that ships.
//!
//! Five stages, each with the window that its channel has: a sender without a credit waits, nothing is dropped.
//! Service takes time that is drawn, load comes in shapes, and a fault can block or slow a stage.
//!
//! [`simulate`] runs a scenario file and checks at every step what must always hold; [`run`] is what laws are
//! compared with. What a drill of the same file finds is counted by the same [`FlowRecorder`].
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
