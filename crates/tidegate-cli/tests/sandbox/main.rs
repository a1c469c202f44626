//! Programs that do what they should not, in the real sandbox, with every layer and with few: each is stopped,
//! the reason has its name, and the next task runs as if nothing had happened.
//!
//! Bombs are bounded by small limits, so that a sandbox that does not hold costs a failed test and not the
//! machine.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod abuse;
mod bench;
mod confined;
mod elsewhere;
mod ends;
mod killed;
mod layers;
mod own_ports;
mod progress;
