use super::{files, ingest, load, requests};

/// A parser with the properties that it must have.
pub struct Target {
    /// The name, also of the folder of its corpus.
    pub name: &'static str,
    /// Panics if a property does not hold. Returns true if the parser accepts the input, or a part of it: the
    /// corpus of each target has inputs of both kinds, so that no property is only tried on what is refused.
    pub run: fn(&[u8]) -> bool,
}

/// All targets, by name.
pub const TARGETS: &[Target] = &[
    Target { name: "config", run: files::config::run },
    Target { name: "execute", run: requests::execute::run },
    Target { name: "frames", run: ingest::frames::run },
    Target { name: "head", run: requests::head::run },
    Target { name: "lines", run: ingest::lines::run },
    Target { name: "metrics", run: load::metrics::run },
    Target { name: "model_scan", run: requests::model_scan::run },
    Target { name: "models", run: load::models::run },
    Target { name: "orca", run: load::orca::run },
    Target { name: "path", run: requests::path::run },
    Target { name: "priority", run: requests::priority::run },
    Target { name: "quantity", run: ingest::quantity::run },
    Target { name: "recording", run: files::recording::run },
    Target { name: "response", run: requests::response::run },
    Target { name: "retry_after", run: requests::retry_after::run },
    Target { name: "scenario", run: files::scenario::run },
    Target { name: "submission", run: requests::submission::run },
    Target { name: "tariff", run: files::tariff::run },
    Target { name: "timeout", run: requests::timeout::run },
];
