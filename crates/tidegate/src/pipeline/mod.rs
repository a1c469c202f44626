//! The ingestion pipeline: Accept → Reassemble → Parse → Evaluate → Store.
//!
//! Bytes of senders go in at an [`Entrance`]; frames and lines are cut out of them, parsed to records, priced by
//! tariffs and stored; answers come out at each [`Connection`]. Before each stage is a channel whose window
//! follows the load, so that a slow store is felt by whoever sends, and nothing is dropped on the way.
//!
//! Nothing here knows a socket: a server pumps bytes between it and connections.

mod assembly;
mod common;
mod config;
mod connection;
mod counters;
mod entrance;
mod held;
mod item;
mod meter;
mod regulate;
mod rejections;
mod replies;
mod senders;
mod signal_cell;
mod snapshot;
mod stages;
mod stale_senders;
mod view;

pub use assembly::{Back, Front, Pipeline};
pub use config::{PipelineConfig, PipelineConfigError};
pub use connection::{Connection, Protocol};
pub use counters::{PipelineCounters, PipelineCounts, Rejected};
pub use entrance::Entrance;
pub use snapshot::{PipelineSnapshot, StageSnapshot};
pub use view::PipelineView;
