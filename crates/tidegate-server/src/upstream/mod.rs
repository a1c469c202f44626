//! What the gateway fronts: the upstreams, the choice among them, and the connections to them.

mod connect;
mod fleet;
mod line;
mod placed;
mod pool;
mod probe;
mod slow;
mod target;
mod tried;

pub use connect::{ConnectError, Connector};
pub use fleet::{Fleet, FleetError};
pub use line::{Line, LineRefusal, Turn};
pub use placed::Placed;
pub use pool::{Connection, Pool, Speaks};
pub use probe::probe_forever;
pub use slow::{SlowDestinations, watch_destinations};
pub use target::{Source, Upstream, UpstreamStats};
pub use tried::Tried;
