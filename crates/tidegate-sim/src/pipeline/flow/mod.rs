//! Counts of records, the same for a simulated and a real pipeline.
//!
//! May use the scenario and the report. Must not know whether time is virtual.

mod charts;
mod conclude;
mod recorder;
mod recovery;
mod slices;

pub use recorder::{FlowPicture, FlowRecorder};
