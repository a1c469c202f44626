//! The ingest client against servers that cut, refuse, stall, lie and vanish. Most run in virtual time over
//! pipes of memory; some over TCP on loopback.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod answers;
mod buffering;
mod counting;
mod numbering;
mod over_tcp;
mod signals;
mod support;
mod troubles;
