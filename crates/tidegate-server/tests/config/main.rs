//! Configuration from the outside: layers, and every error at once.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod docs;
mod exposure;
mod fuzz;
mod keys;
mod layers;
mod log;
mod parts;
mod paths;
mod policies;
mod renamed;
mod routes;
mod routing;
mod service_links;
mod state_folder;
mod support;
mod tasks;
mod tokens;
mod upstreams;
