use super::admin::{ControlPlane, NodeParts};
use super::buffer::BufferBudget;
use super::control_thread::ControlThread;
use super::listener::{Acceptor, IoThread};
use super::proxy::Proxy;
use super::telemetry::{IoThreads, MetricsSnapshot};
use super::upstream::{Fleet, FleetError};
use crate::config::{Config, ListenConfig, Scheme};
use crate::http::Phase;
use crate::http::admission::Admission;
use crate::http::client::Connector;
use crate::http::tls::{EITHER, PortFiles, TlsPort, TlsSetupError, TlsSetupErrors};
use crate::pulse::Pulse;
use socket2::SockRef;
use std::io;
use std::net::{SocketAddr, TcpListener as StdTcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot, watch};

/// Connections that wait for a thread to take them. A thread that is this far behind is passed over.
const INBOX: usize = 1024;

/// A running gateway. Ends when it is [shut down](Gateway::shutdown) or dropped; a drop does not wait.
pub struct Gateway {
    config: Arc<Config>,
    parts: Parts,
    phase: watch::Sender<Phase>,
    threads: Vec<JoinHandle<usize>>,
    acceptor: JoinHandle<()>,
    control: JoinHandle<()>,
    stop_control: oneshot::Sender<()>,
    control_pulse: Pulse,
    address: SocketAddr,
    admin_address: SocketAddr,
}

/// The parts that the threads of a gateway share.
struct Parts {
    admission: Arc<Admission>,
    fleet: Arc<Fleet>,
    threads: Arc<IoThreads>,
    control: Arc<ControlPlane>,
    proxy: Proxy,
}

/// The signs of life of a gateway's threads, also after it was handed to whoever shuts it down.
#[derive(Clone, Debug)]
pub struct GatewayPulse {
    control: Pulse,
    threads: Arc<IoThreads>,
}

/// The outcome of a shutdown.
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
    /// The authorities for upstreams can't be read.
    #[error(transparent)]
    Tls(#[from] TlsSetupError),
    /// TLS files of the ports are missing or wrong.
    #[error(transparent)]
    PortTls(#[from] TlsSetupErrors),
    /// The upstreams can't be as configured.
    #[error(transparent)]
    Fleet(#[from] FleetError),
    /// The system gave no thread, no runtime or no socket.
    #[error("the system refused a thread or a socket: {0}")]
    System(#[from] io::Error),
}

// === impl Gateway ===

impl Gateway {
    /// Binds the ports and starts the threads.
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
        Self::start_with(config, NodeParts::default())
    }

    /// The same with other parts of a node, for which its ports answer too.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub fn start_with(config: Config, mut node: NodeParts) -> Result<Self, GatewayError> {
        let [tls, admin_tls] = ports_tls(&config.listen)?;
        let listener = bind(config.listen.address, "--listen")?;
        let admin = bind(config.listen.admin_address, "--admin-listen")?;
        let (address, admin_address) = (listener.local_addr()?, admin.local_addr()?);
        let any_https = config.upstreams.iter().any(|target| target.scheme == Scheme::Https);
        let connector = Connector::new(&config.proxy, any_https)?;
        let config = Arc::new(config);
        let (phase, phase_seen) = watch::channel(Phase::Serving);
        let own_tls: Vec<_> = tls.iter().chain(&admin_tls).cloned().collect();
        node.tls.extend(own_tls.iter().cloned());
        let parts = Parts::new(&config, &phase_seen, node)?;

        let mut inboxes = Vec::new();
        let mut threads = Vec::new();
        for index in 0..config.listen.threads {
            let (sender, inbox) = mpsc::channel(INBOX);
            inboxes.push(sender);
            let proxy = parts.proxy.on_thread(connector.clone(), parts.threads.metrics(index));
            let io_thread =
                IoThread::new(index, proxy, &config, Arc::clone(&parts.threads), tls.clone());
            let phase = phase_seen.clone();
            let name = format!("tidegate-{index}");
            threads.push(spawn(name, move || io_thread.serve(inbox, phase))?);
        }
        let policy = parts.control.rejection_policy();
        let acceptor = Acceptor::new(&config, Arc::clone(&parts.threads), inboxes, policy);
        let acceptor = start_acceptor(listener, acceptor, phase_seen)?;
        let (stop_control, stop) = oneshot::channel();
        let control_pulse = Pulse::new();
        let control_thread = ControlThread {
            config: Arc::clone(&config),
            admission: Arc::clone(&parts.admission),
            fleet: Arc::clone(&parts.fleet),
            control: Arc::clone(&parts.control),
            connector,
            pulse: control_pulse.clone(),
            tls: admin_tls,
            reloaded: own_tls,
        };
        let control = start_control(admin, control_thread, stop)?;
        Ok(Self {
            config,
            parts,
            phase,
            threads,
            acceptor,
            control,
            stop_control,
            control_pulse,
            address,
            admin_address,
        })
    }

    /// The address of the data port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of the admin port.
    #[must_use]
    pub fn admin_address(&self) -> SocketAddr {
        self.admin_address
    }

    /// The configuration it was started with.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Admission of its requests.
    #[must_use]
    pub fn admission(&self) -> &Arc<Admission> {
        &self.parts.admission
    }

    /// The upstreams.
    #[must_use]
    pub fn fleet(&self) -> &Arc<Fleet> {
        &self.parts.fleet
    }

    /// The control plane.
    #[must_use]
    pub fn control(&self) -> &Arc<ControlPlane> {
        &self.parts.control
    }

    /// The counters of all its threads, added up.
    #[must_use]
    pub fn metrics(&self) -> MetricsSnapshot {
        self.parts.threads.snapshot()
    }

    /// Open client connections of each of its threads.
    #[must_use]
    pub fn connections_by_thread(&self) -> Vec<u64> {
        self.parts.threads.connections().collect()
    }

    /// The signs of life of its control thread and its io threads.
    #[must_use]
    pub fn pulse(&self) -> GatewayPulse {
        GatewayPulse {
            control: self.control_pulse.clone(),
            threads: Arc::clone(&self.parts.threads),
        }
    }

    /// Stops taking connections, finishes what is under way within the grace time, and waits for the end.
    pub fn shutdown(self) -> Drained {
        self.phase.send_replace(Phase::Draining);
        // A thread that panicked has logged it, and has cut its connections already.
        let cut = self.threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum();
        let _ = self.acceptor.join();
        let _ = self.stop_control.send(());
        let _ = self.control.join();
        Drained { cut }
    }
}

// === impl GatewayPulse ===

impl GatewayPulse {
    /// Time since the last sign of life of the thread that has been silent for longest.
    #[must_use]
    pub fn silence(&self) -> Duration {
        self.control.silence().max(self.threads.silence())
    }
}

// === impl Parts ===

impl Parts {
    fn new(
        config: &Arc<Config>,
        phase: &watch::Receiver<Phase>,
        node: NodeParts,
    ) -> Result<Self, GatewayError> {
        let admission = Arc::new(Admission::new(config));
        let fleet = Arc::new(Fleet::new(config)?);
        let buffers = BufferBudget::new(config.listen.threads, config.proxy.buffer_bytes);
        let threads = Arc::new(IoThreads::new(config.listen.threads, buffers));
        let control = Arc::new(ControlPlane::new(
            Arc::clone(config),
            Arc::clone(&admission),
            Arc::clone(&fleet),
            Arc::clone(&threads),
            phase.clone(),
            node,
        ));
        let proxy = Proxy::new(
            Arc::clone(config),
            Arc::clone(&admission),
            Arc::clone(&fleet),
            Arc::clone(&control),
            threads.started(),
        );
        Ok(Self { admission, fleet, threads, control, proxy })
    }
}

/// TLS of the gateway's ports.
pub(crate) fn ports_tls(
    listen: &ListenConfig,
) -> Result<[Option<Arc<TlsPort>>; 2], TlsSetupErrors> {
    let port = |name, files| PortFiles { name, files, protocols: &EITHER };
    TlsPort::load([port("data", listen.tls.as_ref()), port("admin", listen.admin_tls.as_ref())])
}

fn start_acceptor(
    listener: StdTcpListener,
    acceptor: Acceptor,
    phase: watch::Receiver<Phase>,
) -> io::Result<JoinHandle<()>> {
    spawn("tidegate-accept".to_owned(), move || async move {
        match tokio::net::TcpListener::from_std(listener) {
            Ok(listener) => acceptor.accept_until_drained(listener, phase).await,
            Err(error) => tracing::error!(%error, "the data port can't be served"),
        }
    })
}

fn start_control(
    listener: StdTcpListener,
    control: ControlThread,
    stop: oneshot::Receiver<()>,
) -> io::Result<JoinHandle<()>> {
    spawn("tidegate-control".to_owned(), move || async move {
        match tokio::net::TcpListener::from_std(listener) {
            Ok(listener) => control.run(listener, stop).await,
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
    // A second call on a listening socket only lengthens its backlog.
    SockRef::from(&listener).listen(BACKLOG)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
