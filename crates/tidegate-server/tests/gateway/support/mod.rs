//! What the tests share: a gateway on free ports, upstreams that do as they are told, and clients.

mod client;
mod gateway;
#[path = "../../../../tidegate/tests/support/reserved.rs"]
mod reserved;
mod upstream;

pub use client::{Answer, Client, raw};
pub use gateway::{TestGateway, eventually, undisturbed};
pub use reserved::Reserved;
pub use upstream::{RawUpstream, Upstream};
