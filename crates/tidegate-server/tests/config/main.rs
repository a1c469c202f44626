//! Configuration from the outside: layers, and every mistake at once.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod layers;
mod routing;
mod support;
