//! Busy-aware routing as programs use it: exact under races, and recovering by itself from all that can go wrong.

mod models;
mod overshoot;
mod queueing;
mod recovery;
mod refusals;
mod support;
