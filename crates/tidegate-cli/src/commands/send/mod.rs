//! `tidegate send`: reads line protocol and sends it to an ingest server, each record counted once.

mod feed;
mod identity;
mod lines;
mod pace;
mod progress;
mod run;
mod sending;
mod source;
mod summary;

pub use run::run;
