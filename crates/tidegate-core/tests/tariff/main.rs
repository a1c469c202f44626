//! Invariants of prices for any usage, at any time and in any order.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod account_cache;
mod errors;
mod hours;
mod properties;
mod support;
mod warnings;
