//! What happens to records, counted the same way whether the pipeline is simulated or real.

mod charts;
mod conclude;
mod recorder;
mod recovery;
mod slices;

pub use recorder::{FlowPicture, FlowRecorder};
