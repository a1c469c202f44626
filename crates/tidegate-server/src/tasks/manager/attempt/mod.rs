//! One attempt at a task: sends it to an executor, polls it to its end, and persists each state.
//! Uses `link`, `persistence` and `event`.
//! Must not know the queue, nor other tasks.

mod attempt;
mod output_buffer;
mod polling;

pub use attempt::{Attempt, AttemptStart};
