//! What the tests share: an ingestion on free ports, peers that speak to it byte by byte, and a database that can
//! be held up.

mod client;
mod database;
mod node;
mod peer;

pub use client::Load;
pub use database::Database;
pub use node::TestIngest;
pub use peer::{Peer, Said, batch, batch_of, hello, hello_with, lines_peer, record};
