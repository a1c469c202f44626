//! `tidegate drill` as a process: on a test bed, on foreign servers, and without a target.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod foreign;
mod machine;
mod outcomes;
mod program;
mod promises;
mod upstreams;
mod verdict;
mod wrong;
