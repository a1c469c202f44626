//! Servers that keep a record of what they did.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use socket2::{Domain, Socket, Type};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

/// A server on a thread of its own, which ends when this is dropped.
pub struct Server {
    pub port: u16,
    record: Arc<Mutex<Record>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Counts of a server.
#[derive(Clone, Default)]
pub struct Record {
    pub accepted: usize,
    /// Connections that the client has closed.
    pub closed: usize,
    pub requests: Vec<Served>,
    /// The most requests that it had at once.
    pub peak: usize,
    now: usize,
}

/// A request as the server saw it.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    pub id: u64,
    pub received: Instant,
    pub answered: Instant,
}

/// Response to a request.
pub struct Reply {
    pub after: Duration,
    pub status: StatusCode,
    pub bytes: usize,
}

#[derive(Clone, Copy)]
pub enum Speaks {
    Http1,
    /// With so many streams at once.
    Http2(u32),
}

/// A port whose owner accepts nothing, and has no room left for who wants to be accepted.
pub struct FullBacklog {
    pub port: u16,
    _listener: Socket,
    _waiting: Vec<std::net::TcpStream>,
}

/// A port on which nobody listens, and that nobody else gets meanwhile.
pub struct ClosedPort {
    pub port: u16,
    _socket: Socket,
}

// === impl Server ===

impl Server {
    /// A server that answers as `reply` says to the request with this number, which is the how-manieth it got.
    pub fn new(
        speaks: Speaks,
        reply: impl Fn(u64, usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let reply = Arc::new(reply);
        Self::raw(move |stream, record| {
            let reply = Arc::clone(&reply);
            async move {
                let service = service_fn(move |request| {
                    answer(request, Arc::clone(&record), Arc::clone(&reply))
                });
                let io = TokioIo::new(stream);
                let _cut = match speaks {
                    Speaks::Http1 => {
                        hyper::server::conn::http1::Builder::new()
                            .serve_connection(io, service)
                            .await
                    }
                    Speaks::Http2(streams) => {
                        hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                            .max_concurrent_streams(streams)
                            .serve_connection(io, service)
                            .await
                    }
                };
            }
        })
    }

    /// A server that does with each connection what `connection` says.
    pub fn raw<F>(connection: impl Fn(TcpStream, Arc<Mutex<Record>>) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = listen().expect("a port");
        let port = listener.local_addr().as_ref().map(SocketAddr::port).expect("its port");
        let (stop, stopped) = oneshot::channel();
        let record = Arc::new(Mutex::new(Record::default()));
        let kept = Arc::clone(&record);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    () = accept(listener, record, connection) => {}
                }
            });
        });
        Self { port, record: kept, stop: Some(stop), thread: Some(thread) }
    }

    pub fn record(&self) -> Record {
        lock(&self.record).clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

// === impl FullBacklog ===

impl FullBacklog {
    pub fn new() -> Self {
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a port");
        listener.listen(0).expect("a listener");
        let address = listener.local_addr().expect("its address").as_socket().expect("of IP");
        let connect = || std::net::TcpStream::connect_timeout(&address, Duration::from_millis(500));
        // The system decides how many it keeps. What it keeps is kept until the end.
        let waiting: Vec<_> = (0..64).map_while(|_| connect().ok()).collect();
        assert!(waiting.len() < 64, "there is always room");
        Self { port: address.port(), _listener: listener, _waiting: waiting }
    }
}

// === impl Reply ===

impl Reply {
    pub fn after(after: Duration) -> Self {
        Self { after, status: StatusCode::OK, bytes: 3 }
    }
}

// === impl ClosedPort ===

impl ClosedPort {
    pub fn new() -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a port");
        let address = socket.local_addr().expect("its address").as_socket().expect("of IP");
        Self { port: address.port(), _socket: socket }
    }
}

/// With room for all that is to be accepted while the server stands still: the usual 128 would let clients wait
/// for the connection.
fn listen() -> std::io::Result<std::net::TcpListener> {
    let listener = Socket::new(Domain::IPV4, Type::STREAM.nonblocking(), None)?;
    listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into())?;
    listener.listen(4_096)?;
    Ok(listener.into())
}

pub fn lock(record: &Mutex<Record>) -> MutexGuard<'_, Record> {
    record.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept<F>(
    listener: std::net::TcpListener,
    record: Arc<Mutex<Record>>,
    connection: impl Fn(TcpStream, Arc<Mutex<Record>>) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::from_std(listener).expect("a listener");
    while let Ok((stream, _)) = listener.accept().await {
        stream.set_nodelay(true).expect("a socket");
        lock(&record).accepted += 1;
        let serving = connection(stream, Arc::clone(&record));
        let record = Arc::clone(&record);
        tokio::spawn(async move {
            serving.await;
            lock(&record).closed += 1;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    record: Arc<Mutex<Record>>,
    reply: Arc<impl Fn(u64, usize) -> Reply>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let received = Instant::now();
    let query = request.uri().query().unwrap_or_default();
    let id = query.strip_prefix("id=").and_then(|id| id.parse().ok()).unwrap_or(u64::MAX);
    let place = {
        let mut record = lock(&record);
        record.now += 1;
        record.peak = record.peak.max(record.now);
        record.requests.push(Served { id, received, answered: received });
        record.requests.len() - 1
    };
    let reply = reply(id, place);
    if !reply.after.is_zero() {
        tokio::time::sleep(reply.after).await;
    }
    let mut record = lock(&record);
    record.now -= 1;
    record.requests[place].answered = Instant::now();
    let mut response = Response::new(Full::new(Bytes::from(vec![b'x'; reply.bytes])));
    *response.status_mut() = reply.status;
    Ok(response)
}
