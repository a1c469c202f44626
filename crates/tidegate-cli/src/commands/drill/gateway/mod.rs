//! Drills of scenarios with a gateway: test bed or target, load, faults, report.
//! May use: the drill's options, progress and schedule; the server; the testkit.
//! Must not know: the executors and pipeline drills.

mod blocking_http;
mod faults;
mod live_stats;
mod load;
mod requests;
mod run;
mod settings;
mod test_bed;
mod verdict;

pub use run::run;
