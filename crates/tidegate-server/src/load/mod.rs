//! How the load of inference servers is read, as they are: from their metrics pages, and from what they say in the
//! headers of their answers.

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
