use super::access::WorkerAccess;
use super::routes::Routes;
use crate::http::HttpPort;
use crate::http::tls::{EITHER, PortFiles, TlsPort, TlsSetupErrors, reload_forever};
use crate::http::wire::H2_PING_EVERY;
use crate::pulse::Pulse;
use crate::tasks::executor::config::{ExecutorConfig, ExecutorConfigError};
use crate::tasks::executor::drain::Drained;
use crate::tasks::executor::executor::Executor;
use crate::tasks::executor::runner::Runner;
use http::Request;
use hyper::body::Incoming;
use std::io;
use std::net::{SocketAddr, TcpListener as StdTcpListener};
use std::pin::pin;
use std::sync::Arc;
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
    pulse: Pulse,
}

/// Parts of a worker that its thread serves.
struct Service {
    executor: Executor,
    access: WorkerAccess,
    tls: Option<Arc<TlsPort>>,
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
    /// TLS files are missing or wrong.
    #[error(transparent)]
    Tls(#[from] TlsSetupErrors),
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
        Self::start_with(listen, WorkerAccess::default(), config, runner)
    }

    /// Starts a worker whose port has TLS or a token.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start), and when TLS files can't be used. An address beyond loopback needs both TLS and
    /// a token.
    pub fn start_with(
        listen: SocketAddr,
        access: WorkerAccess,
        config: ExecutorConfig,
        runner: Runner,
    ) -> Result<Self, WorkerError> {
        if let Some(error) = worker_config_errors(listen, &access, &config).into_iter().next() {
            return Err(WorkerError::ConfigError(error));
        }
        let files = access.tls.as_ref();
        let [tls] = TlsPort::load([PortFiles { name: "worker", files, protocols: &EITHER }])?;
        let bind = |source| WorkerError::Bind { address: listen, source };
        let listener = StdTcpListener::bind(listen).map_err(bind)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let executor = Executor::start(config, runner, runtime.handle().clone());
        let (stop, stopped) = oneshot::channel();
        let served = executor.clone();
        let pulse = Pulse::new();
        let beating = pulse.clone();
        let service = Service { executor: served, access, tls };
        let thread = thread::Builder::new()
            .name("tidegate-worker".to_owned())
            .spawn(move || run(&runtime, listener, service, stopped, &beating))?;
        Ok(Self { address, executor, stop, thread, pulse })
    }

    /// Address of its port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The signs of life of its thread.
    #[must_use]
    pub fn pulse(&self) -> Pulse {
        self.pulse.clone()
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
    access: &WorkerAccess,
    config: &ExecutorConfig,
) -> Vec<ExecutorConfigError> {
    access.errors(listen).into_iter().chain(config.errors()).collect()
}

fn run(
    runtime: &Runtime,
    listener: StdTcpListener,
    service: Service,
    stopped: oneshot::Receiver<Duration>,
    pulse: &Pulse,
) -> Drained {
    let none = Drained { stopped: 0, left: 0 };
    runtime.block_on(async {
        pulse.beat_here();
        let listener = match TcpListener::from_std(listener) {
            Ok(listener) => listener,
            Err(error) => {
                tracing::error!(%error, "the executor's port can't be served");
                return none;
            }
        };
        let port = HttpPort::new("executor", CONNECTIONS_MAX, HEADER_TIMEOUT);
        let port = port.ping_every(H2_PING_EVERY).tls(service.tls.clone());
        let tls: Vec<_> = service.tls.into_iter().collect();
        tokio::spawn(reload_forever(tls.clone()));
        let executor = service.executor;
        let routes = Arc::new(Routes {
            executor: executor.clone(),
            access: service.access,
            started: SystemTime::now(),
            tls,
        });
        let answer = move |request: Request<Incoming>| {
            let routes = Arc::clone(&routes);
            async move { routes.answer(request).await }
        };
        // Dropped before the port closes: the accept loop holds a connection's slot.
        let drained = {
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
            tokio::select! {
                () = &mut accepting => none,
                drained = executor.drain(grace) => drained,
            }
        };
        port.close(CLOSE_WITHIN).await;
        drained
    })
}
