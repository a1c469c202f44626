use super::routes;
use crate::http::HttpPort;
use crate::http::wire::H2_PING_EVERY;
use crate::tasks::executor::config::{ExecutorConfig, ExecutorConfigError};
use crate::tasks::executor::drain::Drained;
use crate::tasks::executor::executor::Executor;
use crate::tasks::executor::runner::Runner;
use http::Request;
use hyper::body::Incoming;
use std::io;
use std::net::{SocketAddr, TcpListener as StdTcpListener};
use std::pin::pin;
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

/// Most connections at once. Further ones wait in the system's backlog.
pub const CONNECTIONS_MAX: u32 = 4096;

/// Longest time for a request's head to arrive, and for a connection to wait for one.
const HEADER_TIMEOUT: Duration = Duration::from_secs(60);

/// Time for pending responses after the last execution has ended.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);

/// An executor with the HTTP contract, on a thread of its own. Dropped, it ends at once.
pub struct Worker {
    address: SocketAddr,
    executor: Executor,
    stop: oneshot::Sender<Duration>,
    thread: JoinHandle<Drained>,
}

/// Error that keeps a worker from starting. Nothing is left running.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// Setting outside of its range.
    #[error("{0}")]
    ConfigError(ExecutorConfigError),
    /// The port is unavailable.
    #[error(
        "can't listen on {address}: {source}; is another process using it? Choose another with --listen"
    )]
    Bind {
        /// Address to listen on.
        address: SocketAddr,
        /// Reason.
        source: io::Error,
    },
    /// The system refused a thread or a descriptor.
    #[error("can't start: {0}")]
    System(#[from] io::Error),
}

// === impl Worker ===

impl Worker {
    /// Starts a worker.
    ///
    /// # Errors
    ///
    /// When a setting is out of range, the port is unavailable or not a loopback address, or the system refuses a
    /// thread.
    pub fn start(
        listen: SocketAddr,
        config: ExecutorConfig,
        runner: Runner,
    ) -> Result<Self, WorkerError> {
        if let Some(error) = worker_config_errors(listen, &config).into_iter().next() {
            return Err(WorkerError::ConfigError(error));
        }
        let bind = |source| WorkerError::Bind { address: listen, source };
        let listener = StdTcpListener::bind(listen).map_err(bind)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let executor = Executor::start(config, runner, runtime.handle().clone());
        let (stop, stopped) = oneshot::channel();
        let served = executor.clone();
        let thread = thread::Builder::new()
            .name("tidegate-worker".to_owned())
            .spawn(move || run(&runtime, listener, &served, stopped))?;
        Ok(Self { address, executor, stop, thread })
    }

    /// Address of its port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The executor, for callers in the same process.
    #[must_use]
    pub fn executor(&self) -> &Executor {
        &self.executor
    }

    /// Accepts nothing more, lets executions finish within the grace period, stops the rest, and waits for the
    /// end.
    pub fn shutdown(self, grace: Duration) -> Drained {
        let _ = self.stop.send(grace);
        self.thread.join().unwrap_or(Drained { stopped: 0, left: 0 })
    }
}

/// Every setting of a worker outside of its range.
#[must_use]
pub fn worker_config_errors(
    listen: SocketAddr,
    config: &ExecutorConfig,
) -> Vec<ExecutorConfigError> {
    let exposed = (!listen.ip().is_loopback()).then(|| {
        let allowed = "a loopback address: an executor runs code for every caller";
        ExecutorConfigError::new("listen", listen, allowed)
    });
    exposed.into_iter().chain(config.errors()).collect()
}

fn run(
    runtime: &Runtime,
    listener: StdTcpListener,
    executor: &Executor,
    stopped: oneshot::Receiver<Duration>,
) -> Drained {
    let none = Drained { stopped: 0, left: 0 };
    runtime.block_on(async {
        let listener = match TcpListener::from_std(listener) {
            Ok(listener) => listener,
            Err(error) => {
                tracing::error!(%error, "the executor's port can't be served");
                return none;
            }
        };
        let port = HttpPort::new("executor", CONNECTIONS_MAX, HEADER_TIMEOUT);
        let port = port.ping_every(H2_PING_EVERY);
        let (served, started) = (executor.clone(), SystemTime::now());
        let answer = move |request: Request<Incoming>| {
            let executor = served.clone();
            async move { routes::answer(&executor, started, request).await }
        };
        let mut accepting = pin!(port.serve(listener, answer));
        let grace = tokio::select! {
            () = &mut accepting => return none,
            stopped = stopped => match stopped {
                Ok(grace) => grace,
                // The worker was dropped.
                Err(_) => return none,
            },
        };
        // The port still answers polls, and refuses new executions.
        let drained = tokio::select! {
            () = &mut accepting => none,
            drained = executor.drain(grace) => drained,
        };
        port.close(CLOSE_WITHIN).await;
        drained
    })
}
