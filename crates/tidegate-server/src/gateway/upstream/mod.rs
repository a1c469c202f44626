//! Upstreams: the servers behind the gateway, and the choice among them.
//! Uses the client and refusals of `http`, and the router of the library.
//! Must not know requests, connections of clients, or how load is read.

mod fleet;
mod probe;
mod reservation;
mod share;
mod slow_models;
mod target;

pub use fleet::{Fleet, FleetError, TriedUpstreams};
pub use probe::probe_forever;
pub use reservation::Reservation;
pub use share::UpstreamShare;
pub use slow_models::{SlowModels, watch_upstreams};
pub use target::{Source, Upstream, UpstreamStats};
