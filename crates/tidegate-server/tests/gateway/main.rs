#![allow(clippy::unwrap_used)] // A test that cannot go on should say where.

//! The real gateway on real sockets: every test starts its own, and talks to it as a client would.

mod claims;
mod client_share;
mod connections;
mod control;
mod drain;
mod failures;
mod grpc;
mod hostile;
mod permits;
mod proxying;
mod recording;
mod shedding;
mod streaming;
mod support;
mod tls;
mod upgrade;
mod upstream_http1;
