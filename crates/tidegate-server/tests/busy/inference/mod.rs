//! Inference servers in front of which nothing is configured: their limits follow from what they report.
//!
//! The servers are mocks with batches and KV blocks; no real one can run beside the tests.

mod goodput;
mod outages;
mod reported_load;
mod streams;
mod unchecked_thresholds;
