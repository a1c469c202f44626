//! Parts of the start banner that several serving commands print.
//! May use: the server's views and reports.
//! Must not know: commands, flags.

mod chat_line;
mod curl_flags;
mod ingest;
mod sandbox;
mod state;

pub use chat_line::chat_line;
pub use curl_flags::curl_flags;
pub use ingest::{Ports, Tries};
pub use sandbox::Sandbox;
pub use state::{EarlierStore, State};
