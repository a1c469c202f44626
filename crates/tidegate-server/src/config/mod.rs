//! Configuration: a TOML file, the environment and flags, of which the later wins.
//!
//! One table, [`SETTINGS`] and [`LISTS`], says which keys there are, with type, unit, range, default and
//! documentation. Everything else follows from it, and every mistake is reported, not only the first.

mod assemble;
mod checks;
mod choice;
mod clients;
mod env;
mod field;
mod file;
#[cfg(test)]
mod fuzz;
mod ingest;
mod items;
mod loader;
mod logging;
mod mistakes;
mod model;
mod models;
mod origin;
mod password;
mod render;
mod routes;
mod schema;
mod settings;
mod tasks;
mod upstreams;
mod value;

pub use clients::{Anonymous, ClaimsConfig, Client};
pub use field::{Field, List};
pub use ingest::IngestConfig;
pub use loader::{Loaded, Loader};
pub(crate) use mistakes::nearest;
pub use mistakes::{Mistake, Mistakes};
pub use model::{
    AdmissionConfig, Config, ForwardedPolicy, HostPolicy, ListenConfig, LogConfig, LogFormat,
    ProxyConfig, TlsFiles,
};
pub use models::{LoadSource, Orca, OutboxConfig, OverloadStatus, RoutingConfig};
pub use origin::{Origin, Preset};
pub use render::{Setting, init_file, show_json, show_text};
pub use routes::{HeaderMatch, RouteRule};
pub use schema::{LISTS, SETTINGS};
pub use tasks::{LocalExecutor, NetworkUse, RuntimeEntry, TasksConfig};
pub use upstreams::{Scheme, UpstreamTarget};
