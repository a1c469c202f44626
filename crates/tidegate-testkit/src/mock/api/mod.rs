//! HTTP API of the mock: routes, requests, responses and the simulated network below them.
//! May use: engine, work, faults, metrics and the mock's state.
//! Must not know: sockets, the accept loop.

mod body;
mod completion;
mod network;
mod orca;
mod plain;
mod problem;
mod request;
mod response;
mod routes;
mod work_query;

pub(super) use network::NetworkPath;
pub(super) use routes::handle;
