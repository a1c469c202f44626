//! Commands of the binary as processes: started, asked with curl, killed, interrupted and ended by signals.
//!
//! One binary, because each would link the server again. What judges load or takes longest is apart.

#[path = "../../../tidegate/tests/support/mod.rs"]
mod shared;

mod cli;
mod cluster;
mod descriptors;
mod ingest;
mod mock;
mod own_ports;
mod readme;
mod sealed_env;
mod send;
mod service_manager;
mod sessions;
mod slow_readers;
mod state;
mod support;
mod tariff;
mod tasks;
mod tls;
mod token;
mod up;
mod worker;
