//! What the gateway fronts: the upstreams, the choice among them, and the connections to them.

mod connect;
mod fleet;
mod pool;
mod probe;
mod tried;

pub use connect::{ConnectError, Connector};
pub use fleet::{Fleet, InFlight, Upstream, UpstreamStats};
pub use pool::{Connection, Pool, Speaks};
pub use probe::probe_forever;
pub use tried::Tried;
