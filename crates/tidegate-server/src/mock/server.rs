use super::config::{MockConfig, MockMistake};
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
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::sleep;

/// Connections at once. Those beyond it wait in the backlog of the system.
const CONNECTIONS_MAX: usize = 4096;

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
    tokio::join!(shell.drive(), accept(&listener, &shell));
}

async fn accept(listener: &TcpListener, shell: &Arc<Shell>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        // Never closed, so it is always had in the end.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((tcp, peer)) => {
                let shell = Arc::clone(shell);
                tokio::spawn(async move {
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
    let service = service_fn(move |request: Request<Incoming>| {
        let shell = Arc::clone(&shell);
        async move { Ok::<_, Infallible>(routes::answer(shell, peer, request).await) }
    });
    let builder = auto::Builder::new(TokioExecutor::new());
    if let Err(error) = builder.serve_connection(TokioIo::new(tcp), service).await {
        tracing::debug!(%error, "a connection of the mock ended");
    }
}
