//! What upstreams tell of themselves: metrics pages, load headers, lists of models.

pub mod metrics;
pub mod models;
pub mod orca;
