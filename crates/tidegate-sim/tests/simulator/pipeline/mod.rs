//! Tests of the simulated pipeline: its scheduler, its recorder of flows and its scenarios.

mod flow;
mod scenarios;
mod scheduler;
