//! `tidegate ingest`: ingestion of usage records alone.
//! May use: the server, `banner`, `config_loader`, `shutdown`.
//! Must not know: other commands.

mod flags;
mod run;

pub use flags::{EXAMPLES, IngestFlags};
pub use run::run;
