//! Tasks: the HTTP API, the manager that dispatches them, the executor that runs them, and its sandbox.
//! Uses `http` and `config`; each layer inside uses those after it: `api → manager → executor → sandbox →
//! execution`. `worker` connects an executor to a manager elsewhere by the messages of `session`, which `manager`
//! uses too. Must not know the gateway, ingestion or the node.

pub mod api;
pub mod execution;
pub mod executor;
pub mod manager;
pub mod sandbox;
pub mod session;
pub mod worker;
