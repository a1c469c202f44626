#![allow(clippy::unwrap_used)] // A test that cannot go on should say where.

//! TLS on every port, with certificates that the tests issue: handshakes, refusals, client certificates, reloads,
//! and what a stolen client token opens.

mod authority;
mod certified_senders;
mod client;
mod client_certificates;
mod files;
#[path = "../../../tidegate/tests/support/folder.rs"]
mod folder;
mod ingest_node;
mod node;
mod ports;
mod reload;
mod sessions;
mod stolen_token;
mod worker;
