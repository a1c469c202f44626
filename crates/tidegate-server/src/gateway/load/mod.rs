//! Load of inference servers: read from their metrics pages, and from the headers of their responses.
//! Uses upstreams, which it reports to, and the client of `http`.
//! Must not know requests, or what is decided by the load.

mod dialect;
mod fetch;
mod kv;
mod models;
pub mod orca;
mod prometheus;
mod scraped;
mod watch;

pub use dialect::ServerKind;
pub use fetch::{FetchError, Fetched, Scraper};
pub use kv::PER_MILLE;
pub use models::{ModelsError, parse_models};
pub use prometheus::{Sample, Samples};
pub use scraped::Scraped;
pub use watch::watch_forever;
