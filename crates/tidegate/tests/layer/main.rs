//! The tower layer: when it admits, what it holds, and when it lets go.

mod outcomes;
mod over_loopback;
mod readiness;
mod shedding;
mod support;
