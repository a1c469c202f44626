//! Ingestion of usage records: the sockets of the pipeline, the usage API, and its metrics.
//! Uses `http`, `config` and the pipeline of the library.
//! Must not know gateway, tasks or node.

mod admin;
mod client_usage;
mod connections;
mod extension;
mod listen;
mod metrics;
mod retention;
mod sender_tokens;
mod serve;
mod start;
mod stats;
mod stop;
mod usage_error;
mod usage_query;
mod view;

pub use admin::IngestNode;
pub use connections::Connections;
pub use extension::IngestExtension;
pub use metrics::write_metrics;
pub use start::{Flushed, Ingest, IngestError};
pub use stats::IngestStats;
pub use usage_error::UsageError;
pub use usage_query::{usage_answer, usage_json};
pub use view::IngestView;
