use super::{Drained, Executor, ExecutorConfig, Runner, WorkerMistake, routes};
use crate::wire::H2_PING_EVERY;
use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener as StdTcpListener};
use std::pin::pin;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::time::{sleep, timeout};

/// Connections at once. Those beyond it wait in the backlog of the system.
pub const CONNECTIONS_MAX: u32 = 4096;

/// How long the head of a request may take, and how long a connection may wait for one.
const HEADER_TIMEOUT: Duration = Duration::from_secs(60);

/// After the last execution has ended: for those who were just told of it to get their answers.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// An executor behind the contract over HTTP, on a thread of its own. Dropped, it ends at once.
pub struct Worker {
    address: SocketAddr,
    executor: Executor,
    stop: oneshot::Sender<Duration>,
    thread: JoinHandle<Drained>,
}

/// A worker could not be started. Nothing is left running.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// Something in its configuration can't be.
    #[error("{0}")]
    Mistake(WorkerMistake),
    /// Its port can't be had.
    #[error(
        "can't listen on {address}: {source}; is another process using it? Choose another with --listen"
    )]
    Bind {
        /// Where it was to listen.
        address: SocketAddr,
        /// Why it can't.
        source: io::Error,
    },
    /// The system has no thread or no descriptor left.
    #[error("can't start: {0}")]
    System(#[from] io::Error),
}

// === impl Worker ===

impl Worker {
    /// Starts one.
    ///
    /// # Errors
    ///
    /// When its configuration has a mistake, when the port can't be had or others could reach it, or when the
    /// system refuses.
    pub fn start(
        listen: SocketAddr,
        config: ExecutorConfig,
        runner: Runner,
    ) -> Result<Self, WorkerError> {
        if let Some(mistake) = mistakes(listen, &config).into_iter().next() {
            return Err(WorkerError::Mistake(mistake));
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

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The executor, for those in the same process.
    #[must_use]
    pub fn executor(&self) -> &Executor {
        &self.executor
    }

    /// Takes nothing more, lets what runs finish within the grace, stops the rest, and waits for the end.
    pub fn shutdown(self, grace: Duration) -> Drained {
        let _ = self.stop.send(grace);
        self.thread.join().unwrap_or(Drained { stopped: 0, left: 0 })
    }
}

/// Everything in a worker's settings that can't be.
#[must_use]
pub fn mistakes(listen: SocketAddr, config: &ExecutorConfig) -> Vec<WorkerMistake> {
    let exposed = (!listen.ip().is_loopback()).then(|| {
        let allowed = "a loopback address: an executor runs code for whoever asks";
        WorkerMistake::new("listen", listen, allowed)
    });
    exposed.into_iter().chain(config.mistakes()).collect()
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
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX as usize));
        let (ending, ends) = watch::channel(());
        let mut accepting = pin!(accept(&listener, executor, &places, ends));
        let grace = tokio::select! {
            () = &mut accepting => return none,
            stopped = stopped => match stopped {
                Ok(grace) => grace,
                // Dropped: nobody waits for anything.
                Err(_) => return none,
            },
        };
        // Whoever asks meanwhile is still told what becomes of its execution, and that nothing more is taken.
        let drained = tokio::select! {
            () = &mut accepting => none,
            drained = executor.drain(grace) => drained,
        };
        drop(ending);
        let _ = timeout(LAST_WORDS, places.acquire_many(CONNECTIONS_MAX)).await;
        drained
    })
}

async fn accept(
    listener: &TcpListener,
    executor: &Executor,
    places: &Arc<Semaphore>,
    ends: watch::Receiver<()>,
) {
    let started = SystemTime::now();
    loop {
        // Never closed, so it is always had in the end.
        let Ok(place) = Arc::clone(places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((tcp, _)) => {
                let (executor, ends) = (executor.clone(), ends.clone());
                tokio::spawn(async move {
                    serve_connection(executor, started, tcp, ends).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection of the executor");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn serve_connection(
    executor: Executor,
    started: SystemTime,
    tcp: TcpStream,
    mut ends: watch::Receiver<()>,
) {
    let _ = tcp.set_nodelay(true);
    let service = service_fn(move |request: Request<Incoming>| {
        let executor = executor.clone();
        async move { Ok::<_, Infallible>(routes::answer(&executor, started, request).await) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(H2_PING_EVERY);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(tcp), service));
    let ended = tokio::select! {
        ended = &mut connection => ended,
        // The sender is dropped.
        _ = ends.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection of the executor ended");
    }
}
