//! The retry client: in virtual time where waits are long, and over loopback where sockets matter.

mod budget;
mod http_fields;
mod over_loopback;
#[path = "../support/reserved.rs"]
#[allow(dead_code, reason = "not every binary needs all of it")]
mod reserved;
mod stopping;
mod waiting;
