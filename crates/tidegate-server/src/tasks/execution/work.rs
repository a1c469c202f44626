use std::collections::BTreeMap;
use std::time::Duration;
use tidegate::task::ExecutionKey;

/// One execution, as a runner receives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// Task and attempt.
    pub key: ExecutionKey,
    /// Runtime that runs the code.
    pub runtime: String,
    /// Code to run.
    pub code: String,
    /// Arguments after the code.
    pub args: Vec<String>,
    /// Variables added to the runtime's environment.
    pub env: BTreeMap<String, String>,
    /// Longest run time.
    pub timeout: Duration,
}
