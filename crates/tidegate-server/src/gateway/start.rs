use super::connection::Accepted;
use super::shared::{Phase, Shared, ThreadContext, ThreadState};
use super::worker::Worker;
use super::{accept, control_thread};
use crate::admission::{AlertBoard, RetryBoard};
use crate::chance::Chance;
use crate::config::{Config, Scheme};
use crate::control::{TaskTerms, TaskWatchers};
use crate::ingest::IngestView;
use crate::manager::{ManagerMeters, TaskDesk};
use crate::mock::{Mock, MockConfig};
use crate::proxy::Gatekeeper;
use crate::record::Scribe;
use crate::tls::{TlsSetupError, server_acceptor};
use crate::upstream::{Connector, Fleet, FleetError, Pool};
use http::HeaderValue;
use socket2::SockRef;
use std::io;
use std::net::{SocketAddr, TcpListener as StdTcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};
use tidegate::InFlightTracker;
use tidegate::retry::{BudgetLimits, RetryBudget};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot, watch};

/// Connections that wait for a thread to take them. A thread that is this far behind is passed over.
const INBOX: usize = 1024;

/// What the mocks are called that stand in where no upstream is configured.
const MOCKS: [&str; 2] = ["mock-1", "mock-2"];

/// A running gateway. Ends when it is [shut down](Gateway::shutdown) or dropped; a drop does not wait.
pub struct Gateway {
    shared: Arc<Shared>,
    phase: watch::Sender<Phase>,
    threads: Vec<JoinHandle<usize>>,
    acceptor: JoinHandle<()>,
    control: JoinHandle<()>,
    stop_control: oneshot::Sender<()>,
    address: SocketAddr,
    admin_address: SocketAddr,
    mocks: Vec<Mock>,
}

/// What runs beside a gateway in the same node. Nothing by default.
#[derive(Default)]
pub struct Beside {
    /// An ingestion, of which the control plane tells too.
    pub ingest: Option<Arc<IngestView>>,
    /// Where tasks are handed in; without it their paths are not the gateway's.
    pub tasks: Option<TaskDesk>,
    /// What is counted of tasks.
    pub task_meters: Option<Arc<ManagerMeters>>,
    /// What may be asked of tasks.
    pub task_terms: TaskTerms,
}

/// How a shutdown went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Connections that were still busy when the grace time was over.
    pub cut: usize,
}

/// The gateway could not start. Nothing is left running.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// A port is taken, or may not be used.
    #[error(
        "can't listen on {address}: {source}; is another process using it? Choose another with {flag}"
    )]
    Bind {
        /// Where it should have listened.
        address: SocketAddr,
        /// The flag that changes it.
        flag: &'static str,
        /// Why it can't.
        source: io::Error,
    },
    /// TLS files are missing or wrong.
    #[error(transparent)]
    Tls(#[from] TlsSetupError),
    /// The upstreams can't be as configured.
    #[error(transparent)]
    Fleet(#[from] FleetError),
    /// The system gave no thread, no runtime or no socket.
    #[error("the system refused a thread or a socket: {0}")]
    System(#[from] io::Error),
}

// === impl Gateway ===

impl Gateway {
    /// Binds the ports and starts the threads. With no upstream configured it starts two small
    /// [mocks](crate::mock) of its own.
    ///
    /// # Errors
    ///
    /// When a port can't be had, TLS can't be set up, or the system refuses. Nothing is left running.
    ///
    /// ```
    /// use tidegate_server::{config::Config, gateway::Gateway};
    ///
    /// let mut config = Config::default();
    /// config.listen.address = "127.0.0.1:0".parse()?;
    /// config.listen.admin_address = "127.0.0.1:0".parse()?;
    /// let gateway = Gateway::start(config)?;
    /// assert_ne!(gateway.address().port(), 0);
    /// assert_eq!(gateway.shutdown().cut, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn start(config: Config) -> Result<Self, GatewayError> {
        Self::start_beside(config, Beside::default())
    }

    /// The same, beside other parts of a node for which its ports answer too.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub fn start_beside(mut config: Config, beside: Beside) -> Result<Self, GatewayError> {
        let listener = bind(config.listen.address, "--listen")?;
        let admin = bind(config.listen.admin_address, "--admin-listen")?;
        let (address, admin_address) = (listener.local_addr()?, admin.local_addr()?);
        let tls = config.listen.tls.as_ref().map(server_acceptor).transpose()?;
        let mocks = if config.upstreams.is_empty() { start_mocks()? } else { Vec::new() };
        config.upstreams.extend(mocks.iter().map(Mock::target));
        let any_https = config.upstreams.iter().any(|target| target.scheme == Scheme::Https);
        let connector = Connector::new(&config.proxy, any_https)?;
        let (phase, phase_seen) = watch::channel(Phase::Serving);
        let mut shared = shared_state(config, !mocks.is_empty(), phase_seen)?;
        shared.ingest = beside.ingest;
        shared.tasks = beside.tasks;
        shared.task_meters = beside.task_meters;
        shared.task_terms = beside.task_terms;
        let shared = Arc::new(shared);

        let mut inboxes = Vec::new();
        let mut threads = Vec::new();
        for index in 0..shared.threads.len() {
            let (sender, inbox) = mpsc::channel(INBOX);
            inboxes.push(sender);
            let context = thread_context(&shared, connector.clone(), index);
            let worker = Worker::new(index, context, tls.clone());
            threads.push(spawn(format!("tidegate-{index}"), move || worker.serve(inbox))?);
        }
        let acceptor = start_acceptor(listener, &shared, inboxes)?;
        let (stop_control, stop) = oneshot::channel();
        let control = start_control(admin, &shared, connector, stop)?;
        Ok(Self {
            shared,
            phase,
            threads,
            acceptor,
            control,
            stop_control,
            address,
            admin_address,
            mocks,
        })
    }

    /// Where clients connect.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where operators connect.
    #[must_use]
    pub fn admin_address(&self) -> SocketAddr {
        self.admin_address
    }

    /// What all its threads see.
    #[must_use]
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Stops taking connections, finishes what is under way within the grace time, and waits for the end.
    pub fn shutdown(self) -> Drained {
        self.phase.send_replace(Phase::Draining);
        // A thread that panicked has logged it, and has cut its connections already.
        let cut = self.threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum();
        let _ = self.acceptor.join();
        let _ = self.stop_control.send(());
        let _ = self.control.join();
        drop(self.mocks);
        Drained { cut }
    }
}

fn start_mocks() -> io::Result<Vec<Mock>> {
    MOCKS.iter().map(|name| Mock::start(MockConfig::small(name))).collect()
}

fn shared_state(
    config: Config,
    demo: bool,
    phase: watch::Receiver<Phase>,
) -> Result<Shared, GatewayError> {
    let admission = &config.admission;
    let tracker = Arc::new(InFlightTracker::new(admission.limits, admission.sharing));
    let board = Arc::new(RetryBoard::new(admission.retry));
    let gatekeeper = Gatekeeper::new(&config);
    let fleet = Arc::new(Fleet::new(&config)?);
    let mark = format!("1.1 tidegate-{:08x}", Chance::from_process().next() as u32);
    Ok(Shared {
        tracker,
        board,
        journal: Arc::default(),
        alerts: Arc::new(AlertBoard::default()),
        slow: Arc::default(),
        gatekeeper,
        ingest: None,
        tasks: None,
        task_meters: None,
        task_terms: TaskTerms::default(),
        task_watchers: TaskWatchers::default(),
        fleet,
        via: HeaderValue::from_str(&mark).unwrap_or(HeaderValue::from_static("1.1 tidegate")),
        demo,
        exposed: !config.listen.address.ip().is_loopback(),
        phase,
        threads: (0..config.listen.threads).map(|_| ThreadState::default()).collect(),
        connections_refused: 0.into(),
        started: Instant::now(),
        started_at: SystemTime::now(),
        config,
    })
}

fn thread_context(shared: &Arc<Shared>, connector: Connector, index: usize) -> Arc<ThreadContext> {
    let proxy = &shared.config.proxy;
    let pool = Pool::new(&shared.fleet, connector, proxy.idle_connections_max, proxy.idle_timeout);
    Arc::new(ThreadContext {
        pool: Arc::new(pool),
        metrics: Arc::clone(&shared.threads[index].metrics),
        scribe: Arc::new(Scribe::new(Arc::clone(&shared.journal))),
        chance: Chance::from_process(),
        retries: RetryBudget::new(BudgetLimits::default()),
        shared: Arc::clone(shared),
    })
}

fn start_acceptor(
    listener: StdTcpListener,
    shared: &Arc<Shared>,
    inboxes: Vec<mpsc::Sender<Accepted>>,
) -> io::Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    spawn("tidegate-accept".to_owned(), move || async move {
        match tokio::net::TcpListener::from_std(listener) {
            Ok(listener) => accept::accept_forever(listener, shared, inboxes).await,
            Err(error) => tracing::error!(%error, "the data port can't be served"),
        }
    })
}

fn start_control(
    listener: StdTcpListener,
    shared: &Arc<Shared>,
    connector: Connector,
    stop: oneshot::Receiver<()>,
) -> io::Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    spawn("tidegate-control".to_owned(), move || async move {
        match tokio::net::TcpListener::from_std(listener) {
            Ok(listener) => control_thread::run(listener, shared, connector, stop).await,
            Err(error) => tracing::error!(%error, "the admin port can't be served"),
        }
    })
}

/// A thread with a runtime of its own, so that what runs on it shares no queue with any other.
fn spawn<F>(
    name: String,
    work: impl FnOnce() -> F + Send + 'static,
) -> io::Result<JoinHandle<F::Output>>
where
    F: Future,
    F::Output: Send + 'static,
{
    let runtime: Runtime = Builder::new_current_thread().enable_all().build()?;
    thread::Builder::new().name(name).spawn(move || {
        let done = runtime.block_on(work());
        // What only a thread can end, such as a long sum of usage, is not waited for.
        runtime.shutdown_timeout(Duration::from_secs(1));
        done
    })
}

/// Connections that the system holds until they are accepted. A burst of clients must not be mistaken for an
/// attack, nor wait for a second try a second later; the system may hold fewer.
const BACKLOG: i32 = 4096;

fn bind(address: SocketAddr, flag: &'static str) -> Result<StdTcpListener, GatewayError> {
    let listener = StdTcpListener::bind(address).map_err(|source| GatewayError::Bind {
        address,
        flag,
        source,
    })?;
    // Asked again, a socket that listens only takes the longer line.
    SockRef::from(&listener).listen(BACKLOG)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
