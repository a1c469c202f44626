//! The tower layers: when they admit, what they hold, and when they let go.

mod adaptive_limit;
mod outcomes;
mod over_loopback;
mod readiness;
mod shedding;
mod support;
