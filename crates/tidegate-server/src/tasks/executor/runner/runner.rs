use super::http_runner::HttpRunner;
use super::mock_runner::MockRunner;
use crate::tasks::execution::{OutputSink, ProgressSink, SandboxLayer, StopSignal, Work};
use crate::tasks::sandbox::ProcessRunner;
use tidegate::task::Ending;

/// Runner of a slot's executions. A new kind is a variant here and an arm in each method.
pub enum Runner {
    /// Simulates work.
    Mock(MockRunner),
    /// Sends executions to an HTTP server.
    Http(Box<HttpRunner>),
    /// Runs executions as sandboxed processes of this machine.
    Process(Box<ProcessRunner>),
}

// === impl Runner ===

impl Runner {
    /// Name of the kind in capacity reports.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Mock(_) => "mock",
            Self::Http(_) => "http",
            Self::Process(_) => "process",
        }
    }

    /// Runtimes, the default first; empty when it accepts any.
    #[must_use]
    pub fn runtimes(&self) -> &[String] {
        match self {
            Self::Mock(mock) => mock.runtimes(),
            Self::Http(http) => http.runtimes(),
            Self::Process(process) => process.runtimes(),
        }
    }

    /// Layers of the sandbox around an execution.
    #[must_use]
    pub fn sandbox(&self) -> Vec<SandboxLayer> {
        match self {
            // Neither runs code on this machine.
            Self::Mock(_) | Self::Http(_) => Vec::new(),
            Self::Process(process) => process.layers(),
        }
    }

    /// Runs one execution until it exits, times out or is stopped.
    ///
    /// # Cancel safety
    ///
    /// Dropped early, nothing of the execution continues.
    pub async fn run(
        &self,
        work: &Work,
        sink: &OutputSink,
        progress: &ProgressSink,
        stop: StopSignal,
    ) -> Ending {
        match self {
            Self::Mock(mock) => mock.run(work, sink, progress, stop).await,
            // Its server reports progress to the worker's port.
            Self::Http(http) => http.run(work, sink, stop).await,
            Self::Process(process) => process.run(work, sink, progress, stop).await,
        }
    }
}
