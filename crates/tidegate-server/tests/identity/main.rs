#![allow(clippy::unwrap_used)] // A test that cannot go on should say where.

//! Tokens on real ports: what a token opens, and what a stolen one does not.

#[path = "../../../tidegate/tests/support/folder.rs"]
mod folder;
mod node;
mod operators;
#[path = "../gateway/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each binary uses a part of it")]
mod support;
mod tasks;
mod upstream_key;
mod usage;
