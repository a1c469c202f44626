//! Where usage records come in: the sockets of the ingestion pipeline, and what is told of it.

mod admin;
mod listen;
mod metrics;
mod retention;
mod serve;
mod start;
mod stats;
mod usage_query;
mod view;

pub use admin::IngestNode;
pub(crate) use admin::usage;
pub use listen::Connections;
pub use metrics::write_metrics;
pub use start::{Flushed, Ingest, IngestError};
pub use stats::IngestStats;
pub use usage_query::{UsageError, usage_answer, usage_json};
pub use view::IngestView;
