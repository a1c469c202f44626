//! The routing policy: which upstream of a pool gets a request, and what a refused client is told.
//!
//! May use availability and thresholds. Must not know how upstreams are stored or shared between threads: it sees
//! them through the trait [`Pool`].

mod demand;
mod error;
mod latency;
mod pick;
mod pool;
mod router;
mod tried;

pub use demand::Demand;
pub use error::{Overload, RouteError};
pub use latency::{Answer, Latency};
pub use pick::Pick;
pub use pool::{Pool, RouteQuery};
pub use router::RoutingPolicy;
pub use tried::TriedUpstreams;
