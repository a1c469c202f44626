//! What a task store promises, asked of every one: one list of cases runs on a folder and on a real PostgreSQL.
//! Then what each may do wrong in its own way.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod claims;
mod conformance;
#[path = "../support/cutter.rs"]
mod cutter;
mod fjall;
mod kill;
mod model;
mod place;
mod postgres;
mod samples;
#[path = "../support/mod.rs"]
mod support;
