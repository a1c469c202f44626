//! What tests of several crates share: `#[path = ".../tidegate/tests/support/mod.rs"] mod support;`.

// Not every test needs all of it.
#![allow(dead_code)]

pub mod folder;
pub mod postgres;
