//! What holds of prices whatever is used, when, and in which order.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod book;
mod hours;
mod mistakes;
mod properties;
mod support;
mod warnings;
