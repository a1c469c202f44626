//! Tests of simulated executors: placements and scenarios.

mod placements;
mod scenarios;
