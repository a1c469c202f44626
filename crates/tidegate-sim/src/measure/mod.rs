//! What happened to requests, counted as it happens. A simulation and a drill fill the same book, and what is
//! concluded from it is the same code.

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
