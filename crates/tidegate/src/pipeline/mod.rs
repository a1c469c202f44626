//! The ingestion pipeline: Accept → Reassemble → Parse → Evaluate → Store.
//!
//! Bytes of senders go in at an [`Entrance`]; frames and lines are cut out of them, parsed to records, priced by
//! tariffs and stored; answers come out at each [`Connection`]. Before each stage is a channel whose window
//! follows the load: backpressure of a slow store reaches the sender, and nothing is dropped.
//!
//! May use `channel`, `store` and the decisions of `tidegate-core`. Must not know a socket: a server moves bytes
//! between connections and the pipeline.

mod access;
mod assembly;
mod common;
mod config;
mod connection;
mod counters;
mod entrance;
mod item;
mod measure;
mod protocol;
mod rejections;
mod replies;
mod senders;
mod shares;
mod stages;
mod stale_senders;
mod view;

pub use access::{AccessError, OpenAccess, SenderAccess, SenderClient, SenderIdentity};
pub use assembly::{Back, Front, Pipeline};
pub use config::{PipelineConfig, PipelineConfigError};
pub use connection::Connection;
pub use counters::{PipelineCounters, PipelineCounts, Rejected};
pub use entrance::Entrance;
pub use measure::meter::{SERVICE_BOUNDS_NS, ServiceHistogram};
pub use measure::snapshot::{PipelineSnapshot, StageSnapshot};
pub use protocol::Protocol;
pub use view::PipelineView;
