//! Commands of the binary as processes: started, asked with curl, killed, interrupted and ended by signals.
//!
//! One binary, because each would link the server again. What judges load or takes longest is apart.

mod cli;
mod ingest;
mod mock;
mod send;
mod support;
mod tariff;
mod tasks;
mod token;
mod up;
mod worker;
