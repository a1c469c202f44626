//! Tests of routing: the policy over a pool in memory, and properties of an upstream's load account.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod policy;
mod properties;
mod reports;
