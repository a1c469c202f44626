//! The retry client: in virtual time where waits are long, and over loopback where sockets matter.

mod budget;
mod http_fields;
mod over_loopback;
mod stopping;
mod waiting;
