//! A synthetic inference server with the API of OpenAI: for trying the gateway out, for drills and for tests.
//! It computes nothing, and takes for it the time, the queue places and the KV blocks that a real one would.
//!
//! - [`Mock`]: the running server, on a thread of its own.
//! - [`engine`]: how an inference server behaves, as pure decisions over a time that is an argument.
//! - [`work`]: plain work of so much time and so many blocks, for drills.
//! - [`Faults`]: what can be made to go wrong.

mod answer;
mod body;
mod completion;
mod config;
pub mod engine;
mod fault_plan;
mod faults;
mod line;
mod metrics;
mod orca;
mod plain;
mod request;
mod routes;
mod server;
mod shell;
pub mod work;

pub use config::{MetricsStyle, MockConfig, MockMistake};
pub use faults::{Faults, Reports};
pub use server::Mock;
