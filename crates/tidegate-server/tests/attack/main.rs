#![allow(clippy::unwrap_used)] // A test that cannot go on should say where.

//! Attacks on a real gateway over loopback: hostile clients and hostile upstreams, each bounded, with what health,
//! permits and other clients must still get.

mod admin_port;
mod dripping;
mod filled_port;
mod h2_downgrade;
mod h2_floods;
mod h2_frames;
mod half_close;
mod informational;
mod measure;
mod recorder;
mod slow_readers;
mod slow_tls_readers;
mod smuggling;
#[path = "../gateway/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each of the binaries uses a part of it")]
mod support;
mod targets;
