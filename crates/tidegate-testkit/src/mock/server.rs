use super::api::{self, NetworkPath};
use super::config::{MockConfig, MockConfigError};
use super::faults::Outage;
use super::state::MockState;
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

/// Limit of connections; further ones wait in the listen backlog.
const CONNECTIONS_MAX: usize = 4096;

/// Listen backlog after the mock was dead; the system may allow less.
const BACKLOG: u32 = 1024;

/// Timeout of the response to the request that killed the mock.
const FINAL_RESPONSE_MAX: Duration = Duration::from_secs(1);

/// Wait between two attempts to bind the address again.
const BIND_RETRY: Duration = Duration::from_millis(20);

/// Running mock on its own thread; a drop ends it and cuts its connections.
#[derive(Debug)]
pub struct Mock {
    address: SocketAddr,
    _stop: oneshot::Sender<()>,
}

// === impl Mock ===

impl Mock {
    /// Starts a mock.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the configuration has [errors](MockConfig::errors); otherwise if the port can't be bound
    /// or no thread can be started.
    ///
    /// ```
    /// use tidegate_testkit::mock::{Mock, MockConfig};
    ///
    /// let mock = Mock::start(MockConfig::small("mock-1"))?;
    /// assert_ne!(mock.address().port(), 0);
    /// assert_eq!(mock.url(), format!("http://{}", mock.address()));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn start(config: MockConfig) -> io::Result<Self> {
        let errors = config.errors();
        if !errors.is_empty() {
            let text: Vec<_> = errors.iter().map(MockConfigError::to_string).collect();
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

    /// Listen address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// URL of the mock.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

async fn serve(listener: std::net::TcpListener, config: MockConfig) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let state = Arc::new(MockState::new(config));
    tokio::join!(
        state.drive(),
        state.work.drive(),
        state.drive_faults(),
        serve_and_die(listener, &state)
    );
}

/// Serves; closes the listener while the faults say dead.
async fn serve_and_die(mut listener: TcpListener, state: &Arc<MockState>) {
    let Ok(address) = listener.local_addr() else { return };
    let mut outage = state.outage();
    loop {
        let mut connections = JoinSet::new();
        tokio::select! {
            () = accept(&listener, state, &mut connections) => {}
            // The state holds the sender.
            _ = outage.wait_for(|outage| outage.dead) => {}
        }
        drop(listener);
        state.set_listening(false);
        // The connections see that the mock is dead.
        while connections.join_next().await.is_some() {}
        listener = loop {
            match listen_again(address, &mut outage).await {
                Ok(listener) => break listener,
                Err(error) => {
                    tracing::debug!(%error, %address, "the mock can't bind its address yet")
                }
            }
            sleep(BIND_RETRY).await;
        };
        state.set_listening(true);
    }
}

/// Binds the address while the mock is dead, and listens afterwards. A bound socket that does not listen refuses
/// connections and reserves the port.
async fn listen_again(
    address: SocketAddr,
    outage: &mut watch::Receiver<Outage>,
) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Connections that were cut may still occupy the port.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    let _ = outage.wait_for(|outage| !outage.dead).await;
    socket.listen(BACKLOG)
}

async fn accept(listener: &TcpListener, state: &Arc<MockState>, connections: &mut JoinSet<()>) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        // The semaphore is never closed.
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        // Remove ended connections.
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((tcp, peer)) => {
                let state = Arc::clone(state);
                connections.spawn(async move {
                    serve_connection(state, peer.ip(), tcp).await;
                    drop(slot);
                });
            }
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn serve_connection(state: Arc<MockState>, peer: IpAddr, tcp: TcpStream) {
    // Tokens are small packets that must not be delayed.
    let _ = tcp.set_nodelay(true);
    let network = Arc::new(NetworkPath::new(state.outage()));
    let service = service_fn(|request: Request<Incoming>| {
        let (state, network) = (Arc::clone(&state), Arc::clone(&network));
        async move { Ok::<_, Infallible>(api::handle(state, peer, network, request).await) }
    });
    let builder = auto::Builder::new(TokioExecutor::new());
    let mut connection = pin!(builder.serve_connection(TokioIo::new(tcp), service));
    tokio::select! {
        ended = connection.as_mut() => {
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection of the mock failed");
            }
        }
        () = network.broken() => {}
        () = network.dead() => if network.has_final_response() {
            connection.as_mut().graceful_shutdown();
            let _ = timeout(FINAL_RESPONSE_MAX, connection).await;
        },
    }
}
