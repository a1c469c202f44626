#![allow(clippy::unwrap_used)] // A test that cannot go on should say where.

//! Attacks on a real gateway over loopback: hostile clients and hostile upstreams, each bounded, with what health,
//! permits and other clients must still get.

mod admin_port;
mod dripping;
mod half_close;
mod informational;
#[path = "../gateway/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each of the binaries uses a part of it")]
mod support;
mod targets;
