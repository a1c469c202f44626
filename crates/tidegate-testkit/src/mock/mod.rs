//! Mock inference server with OpenAI's API: it computes nothing, but takes a real one's time, slots and KV blocks.
//! May use: HTTP, tokio, the library's generator of random numbers.
//! Must not know: the gateway, scenarios, the load generator.

mod api;
mod config;
pub mod engine;
mod faults;
mod metrics;
mod server;
mod state;
pub mod work;

pub use config::{MetricsStyle, MockConfig, MockConfigError};
pub use faults::{Faults, Reports};
pub use server::Mock;
