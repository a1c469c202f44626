use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// An HTTP upstream that remembers what it was asked, and answers when its gate is open.
pub struct Upstream {
    pub address: SocketAddr,
    pub gate: Gate,
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<AtomicUsize>,
}

/// A request as the upstream saw it.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: Method,
    pub uri: Uri,
    pub version: Version,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// Holds answers back until it is opened.
#[derive(Clone)]
pub struct Gate(watch::Sender<bool>);

impl Gate {
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    pub fn close(&self) {
        self.0.send_replace(false);
    }

    async fn wait(&self) {
        let mut state = self.0.subscribe();
        state.wait_for(|open| *open).await.unwrap();
    }
}

impl Upstream {
    /// One that answers at once.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let gate = Gate(watch::channel(true).0);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(AtomicUsize::new(0));
        let upstream = Self {
            address,
            gate: gate.clone(),
            seen: seen.clone(),
            connections: connections.clone(),
        };
        tokio::spawn(async move {
            loop {
                let (tcp, _) = listener.accept().await.unwrap();
                let (gate, seen, connections) = (gate.clone(), seen.clone(), connections.clone());
                // Counted with its first request: probes of readiness connect and send nothing.
                let uncounted = AtomicBool::new(true);
                tokio::spawn(async move {
                    let service = service_fn(move |request| {
                        if uncounted.swap(false, Ordering::Relaxed) {
                            connections.fetch_add(1, Ordering::Relaxed);
                        }
                        answer(request, gate.clone(), seen.clone())
                    });
                    let _ = auto::Builder::new(TokioExecutor::new())
                        .serve_connection(TokioIo::new(tcp), service)
                        .await;
                });
            }
        });
        upstream
    }

    /// One that answers nothing until its gate is opened.
    pub async fn closed() -> Self {
        let upstream = Self::start().await;
        upstream.gate.close();
        upstream
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub fn last(&self) -> Seen {
        self.seen().pop().expect("the upstream was asked nothing")
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

async fn answer(
    request: Request<Incoming>,
    gate: Gate,
    seen: Arc<Mutex<Vec<Seen>>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let (method, uri, version, headers) = (parts.method, parts.uri, parts.version, parts.headers);
    seen.lock().unwrap().push(Seen { method, uri: uri.clone(), version, headers, body });
    gate.wait().await;
    let status =
        uri.query().and_then(|query| query.strip_prefix("status=")).map(|s| s.parse().unwrap());
    Ok(Response::builder()
        .status(status.unwrap_or(StatusCode::OK))
        .header("connection", "x-hop")
        .header("x-hop", "for the gateway alone")
        .header("x-end", "for the client")
        .body(Full::from("hello"))
        .unwrap())
}

/// An upstream of bytes: each connection is handled by a function of the test.
pub struct RawUpstream {
    pub address: SocketAddr,
}

impl RawUpstream {
    pub async fn start<F, Fut>(handle: F) -> Self
    where
        F: Fn(TcpStream) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            loop {
                let (tcp, _) = listener.accept().await.unwrap();
                tokio::spawn(handle(tcp));
            }
        });
        Self { address }
    }

    /// One that reads a request's head and answers with these bytes, piece by piece as they are, and closes.
    pub async fn saying(pieces: &'static [&'static str]) -> Self {
        Self::start(move |mut tcp| async move {
            Self::read_head(&mut tcp).await;
            for piece in pieces {
                if tcp.write_all(piece.as_bytes()).await.is_err() {
                    return;
                }
            }
        })
        .await
    }

    /// Reads up to the empty line. False when the peer left before.
    pub async fn read_head(tcp: &mut TcpStream) -> bool {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            match tcp.read_u8().await {
                Ok(byte) => head.push(byte),
                Err(_) => return false,
            }
        }
        true
    }
}
