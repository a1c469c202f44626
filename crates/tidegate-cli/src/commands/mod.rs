//! One folder a command: its flags, and the code that runs it.
//! May use: everything below: `admin_client`, `banner`, `config_loader`, `shutdown`, `task_client`, `terminal` ….
//! Must not know: each other.

pub mod cancel;
pub mod cluster;
pub mod config;
pub mod drain;
pub mod drill;
pub mod gate;
pub mod ingest;
pub mod launch;
pub mod logs;
pub mod manager;
pub mod members;
pub mod mock;
pub mod send;
pub mod sim;
pub mod status;
pub mod submit;
pub mod tariff;
pub mod tasks;
pub mod threshold;
pub mod token;
pub mod up;
pub mod upstreams;
pub mod usage;
pub mod worker;
pub mod workers;
