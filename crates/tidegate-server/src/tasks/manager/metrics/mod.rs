//! Counters, histograms and gauges of the manager, and their exposition.
//! Uses `http` for the exposition format.
//! Must not know the manager's state.

mod exposition;
mod meters;

pub use exposition::write_metrics;
pub use meters::{ExecutorGauge, ManagerGauges, ManagerMeters, MeterSnapshot, RetryCause};
