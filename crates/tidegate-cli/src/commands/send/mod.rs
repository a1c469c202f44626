//! `tidegate send`: reads line protocol and sends it to an ingest server, each record counted once.
//! May use: the ingest client of the library, the TLS flags of `admin_client`, `shutdown`.
//! Must not know: other commands.

mod connector;
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
