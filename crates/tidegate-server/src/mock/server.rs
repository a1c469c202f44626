use super::config::{MockConfig, MockMistake};
use super::line::{Line, Outage};
use super::routes;
use super::shell::Shell;
use crate::config::{Scheme, UpstreamTarget};
use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Connections at once. Those beyond it wait in the backlog of the system.
const CONNECTIONS_MAX: usize = 4096;

/// Connections that wait to be accepted, after the mock was dead. The system may hold fewer.
const BACKLOG: u32 = 1024;

/// How long the answer to who asked for its death may take to be sent.
const LAST_WORDS_MAX: Duration = Duration::from_secs(1);

/// How long until it is tried again to have the address back.
const BIND_RETRY: Duration = Duration::from_millis(20);

/// A running mock, on a thread of its own. Ends when dropped, and cuts what is under way.
#[derive(Debug)]
pub struct Mock {
    address: SocketAddr,
    _stop: oneshot::Sender<()>,
}

// === impl Mock ===

impl Mock {
    /// Starts one.
    ///
    /// # Errors
    ///
    /// `InvalidInput` when the configuration has [mistakes](MockConfig::mistakes); else when the port can't be
    /// had, or the system has no thread left.
    ///
    /// ```
    /// use tidegate_server::mock::{Mock, MockConfig};
    ///
    /// let mock = Mock::start(MockConfig::small("mock-1"))?;
    /// assert_ne!(mock.address().port(), 0);
    /// assert_eq!(mock.target().name, mock.address().to_string());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn start(config: MockConfig) -> io::Result<Self> {
        let mistakes = config.mistakes();
        if !mistakes.is_empty() {
            let text: Vec<_> = mistakes.iter().map(MockMistake::to_string).collect();
            return Err(io::Error::new(ErrorKind::InvalidInput, text.join("; ")));
        }
        let listener = std::net::TcpListener::bind(config.listen)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let name = format!("tidegate-{}", config.name);
        thread::Builder::new().name(name).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = serve(listener, config) => {}
                    // Resolves when `Mock` is dropped.
                    _ = stopped => {}
                }
            });
        })?;
        Ok(Self { address, _stop: stop })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The mock as an upstream.
    #[must_use]
    pub fn target(&self) -> UpstreamTarget {
        UpstreamTarget {
            name: self.address.to_string(),
            scheme: Scheme::Http,
            host: self.address.ip().to_string(),
            port: self.address.port(),
            models: None,
        }
    }
}

async fn serve(listener: std::net::TcpListener, config: MockConfig) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let shell = Arc::new(Shell::new(config));
    tokio::join!(
        shell.drive(),
        shell.bench.drive(),
        shell.drive_faults(),
        live_and_die(listener, &shell)
    );
}

/// Serves, and is dead whenever the faults say so.
async fn live_and_die(mut listener: TcpListener, shell: &Arc<Shell>) {
    let Ok(address) = listener.local_addr() else { return };
    let mut outage = shell.outage();
    loop {
        let mut connections = JoinSet::new();
        tokio::select! {
            () = accept(&listener, shell, &mut connections) => {}
            // Its sender lives in the shell.
            _ = outage.wait_for(|outage| outage.dead) => {}
        }
        drop(listener);
        shell.listens(false);
        // They see for themselves that it is dead.
        while connections.join_next().await.is_some() {}
        listener = loop {
            match listen_again(address, &mut outage).await {
                Ok(listener) => break listener,
                Err(error) => tracing::debug!(%error, %address, "the mock can't listen again yet"),
            }
            sleep(BIND_RETRY).await;
        };
        shell.listens(true);
    }
}

/// Keeps the address while it is dead, and listens then. What is bound and does not listen refuses connections,
/// and nobody else can have the port meanwhile, not even for a connection that goes out.
async fn listen_again(
    address: SocketAddr,
    outage: &mut watch::Receiver<Outage>,
) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Connections that were cut may still occupy the port, for the system.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    let _ = outage.wait_for(|outage| !outage.dead).await;
    socket.listen(BACKLOG)
}

async fn accept(listener: &TcpListener, shell: &Arc<Shell>, connections: &mut JoinSet<()>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        // Never closed, so it is always had in the end.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        // Those that have ended are forgotten.
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((tcp, peer)) => {
                let shell = Arc::clone(shell);
                connections.spawn(async move {
                    serve_connection(shell, peer.ip(), tcp).await;
                    drop(place);
                });
            }
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn serve_connection(shell: Arc<Shell>, peer: IpAddr, tcp: TcpStream) {
    // A token is a small packet, and each is waited for.
    let _ = tcp.set_nodelay(true);
    let line = Arc::new(Line::new(shell.outage()));
    let service = service_fn(|request: Request<Incoming>| {
        let (shell, line) = (Arc::clone(&shell), Arc::clone(&line));
        async move { Ok::<_, Infallible>(routes::answer(shell, peer, line, request).await) }
    });
    let builder = auto::Builder::new(TokioExecutor::new());
    let mut connection = pin!(builder.serve_connection(TokioIo::new(tcp), service));
    tokio::select! {
        ended = connection.as_mut() => {
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection of the mock ended");
            }
        }
        () = line.broken() => {}
        () = line.dead() => if line.has_last_words() {
            connection.as_mut().graceful_shutdown();
            let _ = timeout(LAST_WORDS_MAX, connection).await;
        },
    }
}
