//! Tests of admission: limits, sharing and totals, against a model and under real threads.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod ad32_server_side;
mod dry_run;
mod properties;
mod real_threads;
