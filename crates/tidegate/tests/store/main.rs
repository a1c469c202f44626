//! What a store promises, asked of every store: one list of cases runs on a folder and on a real PostgreSQL. Then
//! what each may do wrong in its own way.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod clients;
mod conformance;
#[path = "../support/cutter.rs"]
mod cutter;
mod disk_full;
mod fjall;
mod kill;
mod model;
mod place;
mod postgres;
mod records;
#[path = "../support/reserved.rs"]
#[allow(dead_code, reason = "not every binary needs all of it")]
mod reserved;
#[path = "../support/mod.rs"]
mod support;
