//! What a ledger of slots promises, asked of every ledger: one list of cases runs in memory and on a real Redis,
//! which the tests start. Then what can befall a Redis.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod conformance;
mod crowd;
mod place;
mod random;
mod redis;
