//! Real processes that are killed and stopped while tasks go through them: workers, managers, Redis, PostgreSQL.
//! Every task that was acknowledged ends exactly once, no attempt is started twice, and every slot is free
//! afterwards.
//!
//! Faults come when a known number of executions is under way, not after some time: what the workers pass their
//! tasks to is a part of the test, and can hold them.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

#[path = "../../../tidegate/tests/support/mod.rs"]
mod support;

mod ask;
mod claims;
mod everything;
mod fleet;
mod load;
mod managers;
mod placements;
mod program;
mod servers;
mod target;
mod verdict;
mod workers;

use std::thread;
use std::time::{Duration, Instant};

/// Only ends a test that has failed; none is judged by it.
const LONGEST: Duration = Duration::from_secs(60);

/// Waits for something that has to come.
#[track_caller]
fn until(what: &str, mut came: impl FnMut() -> bool) {
    let since = Instant::now();
    while !came() {
        assert!(since.elapsed() < LONGEST, "it never came to this: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}
