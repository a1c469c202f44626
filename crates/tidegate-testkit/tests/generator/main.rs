//! The load generator against servers that know what they did. Those that
//! measure run alone: they would disturb each other.

#![allow(clippy::unwrap_used)] // A test that cannot go on should say where.

mod broken;
mod connections;
mod deadlines;
mod http2;
mod latency;
mod load;
mod retries;
mod schedule;
mod server;
