//! Upstreams: the servers behind the gateway, the choice among them, and the queue in front of each.
//! Uses the client and refusals of `http`, and the router of the library.
//! Must not know requests, connections of clients, or how load is read.

mod fleet;
mod probe;
mod queue;
mod reservation;
mod slow_upstreams;
mod target;

pub use fleet::{Fleet, FleetError, TriedUpstreams};
pub use probe::probe_forever;
pub use queue::{Turn, UpstreamQueue};
pub use reservation::Reservation;
pub use slow_upstreams::{SlowUpstreams, watch_upstreams};
pub use target::{Source, Upstream, UpstreamStats};
