//! Counts of requests, and the figures that follow from them: one recorder for simulations and drills.
//!
//! May use the scenario and the report. Must not know whether time is virtual.

mod bins;
mod conclude;
mod cut;
mod groups;
mod latency;
mod recorder;
mod recovery;
mod refusals;
mod slice_times;

pub use recorder::{Attempt, Ended, How, Recorder};
