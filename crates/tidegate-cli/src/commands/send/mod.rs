//! `tidegate send`: reads line protocol and sends it to an ingest server, each record counted once.
//! May use: the ingest client of the library, `shutdown`.
//! Must not know: other commands.

mod feed;
mod flags;
mod identity;
mod lines;
mod pace;
mod progress;
mod run;
mod sending;
mod source;
mod summary;

pub use flags::{EXAMPLES, SendFlags};
pub use run::run;
