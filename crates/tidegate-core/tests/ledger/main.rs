//! A ledger of slots: random sequences beside a plain one, and each way in which such a ledger is known to fail,
//! by its name.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod asking;
mod failures;
mod plain;
mod properties;
