//! Progress of an execution: counters, gauges, histograms and a message, bounded and mergeable in any order.
//!
//! Uses nothing of the other modules. Must not know executors, pipes or HTTP.

mod bounds;
mod error;
mod histogram;
mod line;
mod lines;
mod progress;
mod series;

pub use bounds::{
    BUCKETS_MAX, COUNTERS_MAX, GAUGES_MAX, HISTOGRAMS_MAX, LINE_BYTES_MAX, MESSAGE_BYTES_MAX,
    NAME_BYTES_MAX,
};
pub use error::ProgressError;
pub use histogram::Histogram;
pub use line::parse_line;
pub use lines::ProgressLines;
pub use progress::Progress;
pub use series::{ProgressPoint, ProgressSeries};
