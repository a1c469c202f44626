//! The ingestion of usage records without its sockets and stores: the windowed channel, the pipeline under load,
//! the client and tariffs.
//!
//! One binary, because each would link the same crates again.

mod adaptive_backpressure_test;
mod channel;
mod channel_properties;
mod client;
mod protocol_client;
#[path = "../support/reserved.rs"]
mod reserved;
mod tariff_file;
