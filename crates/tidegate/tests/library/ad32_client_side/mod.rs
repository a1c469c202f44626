//! What AD-32 asks for of its client side, under its numbers, and what its own code got wrong.

mod counting;
mod failures;
mod integration;
mod leaving;
mod load;
mod pacing;
mod sending;
mod support;
mod threads;
mod unit;
