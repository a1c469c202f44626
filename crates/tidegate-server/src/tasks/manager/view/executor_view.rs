use crate::tasks::execution::{CapacityReport, SandboxLayer};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tidegate::task::TaskStatus;

/// An executor with its capacity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutorView {
    /// Name, as in a task's `executor`.
    pub name: String,
    /// URL; empty for the executor of this process.
    pub url: String,
    /// The executor answers.
    pub up: bool,
    /// Executions that hold a slot.
    pub running: u32,
    /// Slots reserved for executions that have not started.
    pub reserved: u32,
    /// All slots.
    pub max_concurrent: u32,
    /// Runtimes that it has; empty when not reported: then it may run anything.
    #[serde(default)]
    pub runtimes: Vec<String>,
    /// Kind of its runner: `process`, `http` or `mock`; empty when not reported.
    #[serde(default)]
    pub kind: String,
    /// Layers of the sandbox around an execution.
    #[serde(default)]
    pub sandbox: Vec<SandboxLayer>,
}

/// Every executor, and the number of tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutorList {
    /// Executors in the order of the configuration.
    pub executors: Vec<ExecutorView>,
    /// Number of tasks in each status.
    #[serde(default)]
    pub tasks: BTreeMap<TaskStatus, u64>,
}

// === impl ExecutorView ===

impl ExecutorView {
    /// The view of an executor by its last report.
    pub(in crate::tasks::manager) fn new(
        name: &str,
        url: &str,
        up: bool,
        running: u32,
        report: Option<&CapacityReport>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            url: url.to_owned(),
            up,
            running,
            reserved: report.map_or(0, |report| report.reserved),
            max_concurrent: report.map_or(0, |report| report.max_concurrent),
            runtimes: report.map(|report| report.runtimes.clone()).unwrap_or_default(),
            kind: report.map(|report| report.kind.clone()).unwrap_or_default(),
            sandbox: report.map(|report| report.sandbox.clone()).unwrap_or_default(),
        }
    }
}
