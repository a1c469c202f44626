use crate::config::{LocalExecutor as RunnerKind, TasksConfig};
use crate::tasks::executor::{Executor, ExecutorConfig, MockRunner, Runner};
use crate::tasks::sandbox::{ProcessConfig, ProcessRunner, RunnerError, RuntimeConfig};
use std::io;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tidegate::task::TaskLimits;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

/// Executor of this process, on a thread of its own.
pub(super) struct LocalExecutor {
    executor: Executor,
    stop: oneshot::Sender<Duration>,
    thread: JoinHandle<()>,
}

/// Error that keeps the executor of this process from starting.
#[derive(Debug, thiserror::Error)]
pub enum LocalExecutorError {
    /// Its sandbox or a runtime is unavailable.
    #[error("{0}; set --task-slots 0 for no local slots, or --no-tasks for none")]
    Runner(#[from] RunnerError),
    /// The system refused a thread or a runtime.
    #[error("the system refused a thread: {0}")]
    System(#[from] io::Error),
}

// === impl LocalExecutor ===

impl LocalExecutor {
    /// Starts an executor with so many slots.
    pub fn start(config: &TasksConfig, slots: u32, name: &str) -> Result<Self, LocalExecutorError> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let runner = runner(config, &runtime)?;
        let executor = ExecutorConfig {
            limits: TaskLimits { code_bytes_max: config.code_bytes_max, ..TaskLimits::default() },
            timeout_default: config.timeout,
            output_bytes_max: config.output_bytes_max,
            ..ExecutorConfig::new(name, slots)
        };
        let executor = Executor::start(executor, runner, runtime.handle().clone());
        let (stop, stopped) = oneshot::channel::<Duration>();
        let drained = executor.clone();
        let thread =
            thread::Builder::new().name("tidegate-executor".to_owned()).spawn(move || {
                runtime.block_on(async {
                    // A dropped sender means no grace period.
                    let grace = stopped.await.unwrap_or_default();
                    drained.drain(grace).await;
                });
                runtime.shutdown_timeout(Duration::from_secs(1));
            })?;
        Ok(Self { executor, stop, thread })
    }

    pub fn executor(&self) -> &Executor {
        &self.executor
    }

    /// Lets executions finish within the grace period, and stops the rest.
    pub fn shutdown(self, grace: Duration) {
        let _ = self.stop.send(grace);
        // A thread that panicked has logged it.
        let _ = self.thread.join();
    }
}

fn runner(config: &TasksConfig, runtime: &Runtime) -> Result<Runner, RunnerError> {
    if config.executor == RunnerKind::Mock {
        return Ok(Runner::Mock(MockRunner::new(config.mock_work, Vec::new())));
    }
    let mut process = ProcessConfig::default();
    if let Some(folder) = &config.work_folder {
        process.folder.clone_from(folder);
    }
    // Tasks of an earlier process may start before this one listens.
    process.refused_ports.clone_from(&config.node_ports);
    process.unguarded_network = config.unguarded_network;
    process.runtimes = config.runtimes.iter().map(RuntimeConfig::from).collect();
    let runner = runtime.block_on(ProcessRunner::new(process))?;
    Ok(Runner::Process(Box::new(runner)))
}
