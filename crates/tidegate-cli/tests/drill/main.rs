//! `tidegate drill` as a process: on a stage of its own, on servers of others, and on nothing at all.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod foreign;
mod machine;
mod outcomes;
mod program;
mod promises;
mod verdict;
mod workers;
mod wrong;
