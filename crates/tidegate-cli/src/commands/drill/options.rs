use super::stop::Stop;
use crate::drill_flags::{DrillFlags, ProtocolFlag};
use hyper::Uri;
use std::collections::BTreeMap;

/// What a drill of any world needs to know besides its scenario.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is drilled; without it what is drilled is started for it.
    pub target: Option<Uri>,
    /// Workers in which faults can be made, where the target is given.
    pub workers: Vec<Uri>,
    /// The tokens of tenants, where the target is given.
    pub tokens: BTreeMap<String, String>,
    /// What critical classes ask for.
    pub critical_path: String,
    pub protocol: ProtocolFlag,
    /// Connections at once.
    pub connections: usize,
    /// Whether progress is shown, if there is a terminal.
    pub progress: bool,
    /// Whether somebody asked for an end before the end. What was measured until then is reported.
    pub stop: Stop,
}

// === impl Options ===

impl Options {
    pub fn new(flags: &DrillFlags, stop: Stop) -> Self {
        Self {
            target: flags.target.clone(),
            workers: flags.workers.clone(),
            tokens: flags.tokens.iter().cloned().collect(),
            critical_path: flags.critical_path.clone(),
            protocol: flags.protocol,
            connections: flags.connections as usize,
            progress: !flags.no_progress,
            stop,
        }
    }
}
