//! The sections and lists of the configuration: every setting is declared here, once.
//! Uses the schema, values, policies and errors.
//! Must not know the layers that give values.

mod clients;
mod gateway;
mod ingest;
mod operators;
mod routes;
mod routing;
mod tasks;
mod tls;
mod tokens;
mod workers;

pub use clients::{Client, ClientSettings, clients};
pub use gateway::*;
pub use ingest::{IngestConfig, IngestSettings};
pub use operators::{Operator, OperatorSettings, operators};
pub use routes::{HeaderMatch, RouteRule, RouteSettings, routes};
pub use routing::*;
pub use tasks::*;
pub use tls::{PortSettings, TlsFiles, TlsSettings};
pub use tokens::{Identity, Taken, Variables};
pub use workers::{WorkerSettings, WorkersConfig, WorkersSettings, worker_identities};
