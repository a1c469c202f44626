use super::SandboxLayer;
use super::http_runner::HttpRunner;
use super::mock_runner::MockRunner;
use super::process::ProcessRunner;
use super::work::{OutputSink, StopSignal, Work};
use tidegate::task::Ending;

/// What runs in a slot. A new kind is a variant here, and an arm in each method.
pub enum Runner {
    /// Does nothing for a while.
    Mock(MockRunner),
    /// Passes executions on to a server.
    Http(HttpRunner),
    /// Runs them as processes of this machine, in a sandbox.
    Process(Box<ProcessRunner>),
}

// === impl Runner ===

impl Runner {
    /// Its kind, as capacity reports have it.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Mock(_) => "mock",
            Self::Http(_) => "http",
            Self::Process(_) => "process",
        }
    }

    /// What it can run, the default first; empty when it runs anything.
    #[must_use]
    pub fn runtimes(&self) -> &[String] {
        match self {
            Self::Mock(mock) => mock.runtimes(),
            Self::Http(http) => http.runtimes(),
            Self::Process(process) => process.runtimes(),
        }
    }

    /// What stands between an execution and the machine.
    #[must_use]
    pub fn sandbox(&self) -> Vec<SandboxLayer> {
        match self {
            // Nothing is run here that could do anything.
            Self::Mock(_) | Self::Http(_) => Vec::new(),
            Self::Process(process) => process.layers(),
        }
    }

    /// Runs one to its end: by itself, by its time, or because it must stop.
    ///
    /// # Cancel safety
    ///
    /// Given up, nothing of it goes on.
    pub async fn run(&self, work: &Work, sink: &OutputSink, stop: StopSignal) -> Ending {
        match self {
            Self::Mock(mock) => mock.run(work, sink, stop).await,
            Self::Http(http) => http.run(work, sink, stop).await,
            Self::Process(process) => process.run(work, sink, stop).await,
        }
    }
}
