//! The library as programs use it: layers, routing, retries, outbox and ledgers, its examples, its names and its
//! dependencies.
//!
//! One binary, because each would link the same crates again. Stores are apart: they take longest. What counts
//! allocations is apart too (`no_allocation.rs`).

mod ad32_client_side;
mod dependencies;
mod examples;
mod layer;
mod ledger;
mod public_names;
#[path = "../support/reserved.rs"]
#[allow(dead_code, reason = "not every binary needs all of it")]
mod reserved;
mod retry;
mod routing;
#[path = "../support/mod.rs"]
mod support;
