//! What the tests share: a gateway on free ports, upstreams that do as they are told, and clients.

mod client;
mod gateway;
mod promtool;
mod upstream;

pub use client::{Answer, Client, raw};
pub use gateway::{TestGateway, eventually};
pub use promtool::promtool;
pub use upstream::{RawUpstream, Upstream};
