use super::flags::{DrillFlags, ProtocolFlag};
use super::stop::StopRequest;
use hyper::Uri;
use std::collections::BTreeMap;

/// Options of a drill, validated.
#[derive(Clone, Debug)]
pub struct Options {
    /// URL of the target; `None` for a test bed.
    pub target: Option<Uri>,
    /// Mock upstreams of the target, for faults.
    pub upstreams: Vec<Uri>,
    /// Tokens of tenants at the target.
    pub tokens: BTreeMap<String, String>,
    /// Path that critical classes request.
    pub critical_path: String,
    pub protocol: ProtocolFlag,
    /// Limit of connections.
    pub connections: usize,
    /// Shows progress if there is a terminal.
    pub progress: bool,
    /// Set by Ctrl-C; the report covers the time until then.
    pub stop: StopRequest,
}

// === impl Options ===

impl Options {
    pub fn new(flags: &DrillFlags, stop: StopRequest) -> Self {
        Self {
            target: flags.target.clone(),
            upstreams: flags.upstreams.clone(),
            tokens: flags.tokens.iter().cloned().collect(),
            critical_path: flags.critical_path.clone(),
            protocol: flags.protocol,
            connections: flags.connections as usize,
            progress: !flags.no_progress,
            stop,
        }
    }
}
