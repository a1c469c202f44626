//! Drills of the ingestion pipeline: test bed or target, load, ground truth, report.
//! May use: the drill's options and progress; the server; the ingest client.
//! Must not know: the gateway and executors drills.

mod ground_truth;
mod load;
mod paced_store;
mod run;
mod schedule;
mod sender;
mod test_bed;

pub use run::run;
