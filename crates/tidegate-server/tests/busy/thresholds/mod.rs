//! Busy thresholds: their API, their exactness under concurrency, priorities, and the dry run.

mod api;
mod dry_run;
mod errors;
mod overshoot;
mod priorities;
