//! The ingestion pipeline in virtual time, under the scheduler that ships.
//!
//! Five stages, each with the window that its channel has: a sender without a credit waits, nothing is dropped.
//! Service takes time that is drawn, load comes in shapes, and a fault can block or slow a stage.

mod channel;

mod load;
mod measure;
mod model;
mod report;
mod scenario;
mod server;

pub use load::Load;
pub use model::run;
pub use report::{PipelineReport, Tick};
pub use scenario::{Fault, FaultKind, PipelineScenario, Spread, StageModel};
