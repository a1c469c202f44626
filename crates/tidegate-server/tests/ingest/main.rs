#![allow(clippy::unwrap_used)] // A test that cannot go on should say where.

//! The real ingestion on real sockets, and what may go wrong around it: frames and lines that are none, peers that
//! vanish, don't read, show no token, or are one too many, stores that block or are gone.

mod cardinality;
mod connections;
mod database_gone;
mod frames;
mod half_open;
mod lines;
mod pages;
mod senders;
mod series;
mod shedding;
mod shutdown;
mod slow_reader;
mod starving;
mod sums;
mod support;
mod tokens;
mod truth;

#[path = "../gateway/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each of the binaries uses a part of it")]
mod http;
#[path = "../../../tidegate/tests/support/mod.rs"]
mod shared;
