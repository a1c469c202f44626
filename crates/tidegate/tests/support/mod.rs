//! What tests of several crates share: `#[path = ".../tidegate/tests/support/mod.rs"] mod support;`.

// Not every test needs all of it; and a helper that fails is a test that fails, in a benchmark too.
#![allow(dead_code, clippy::unwrap_used)]

pub mod folder;
pub mod port;
pub mod postgres;
pub mod redis;
