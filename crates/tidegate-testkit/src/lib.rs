//! Test tools for drills, benchmarks and tests; a serving node must not contain them.
//!
//! - [`mock`]: a mock inference server.
//! - [`generator`]: an open-loop load generator over HTTP.
//! - [`promtool`]: checks of metrics pages.

pub mod generator;
pub mod mock;
pub mod promtool;

/// The examples of the project's README, compiled and run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
