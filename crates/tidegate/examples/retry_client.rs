//! Retries against an overloaded server: a capacity of 90 requests/s gets 200 requests/s, from clients that retry
//! at once, from clients that double their wait, and from `RetryClient`.
//!
//! `cargo run -p tidegate --example retry_client`
//!
//! The example starts its own server on loopback. A refusal costs that server a tenth of the work. Goodput counts
//! the requests that were answered within the deadline; load is the number of tries per request.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tidegate::retry::{BudgetLimits, Failure, RetryClient, RetryPolicy, Safety};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep, timeout};

type Body = Full<Bytes>;
type BoxError = Box<dyn Error + Send + Sync>;

const WORK: Duration = Duration::from_millis(10);
const REFUSAL: Duration = Duration::from_millis(1);
const PLACES: usize = 8;
const REQUESTS_PER_S: u64 = 200;
const SECONDS: u64 = 1;
const DEADLINE: Duration = Duration::from_secs(1);

/// One worker, which does requests and refusals one after the other, and a few places to wait for it.
struct Server {
    worker: Mutex<()>,
    places: Semaphore,
    asked: AtomicU64,
}

// === impl Server ===

impl Server {
    async fn start() -> Result<(Arc<Self>, SocketAddr), BoxError> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let server = Arc::new(Self {
            worker: Mutex::new(()),
            places: Semaphore::new(PLACES),
            asked: AtomicU64::new(0),
        });
        let served = Arc::clone(&server);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = Arc::clone(&served);
                let service = service_fn(move |_request| Arc::clone(&server).answer());
                let http = hyper::server::conn::http1::Builder::new();
                tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
            }
        });
        Ok((server, address))
    }

    async fn answer(self: Arc<Self>) -> Result<Response<Body>, Infallible> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let place = self.places.try_acquire();
        let (status, cost) = match place {
            Ok(_) => (StatusCode::OK, WORK),
            Err(_) => (StatusCode::SERVICE_UNAVAILABLE, REFUSAL),
        };
        let _worker = self.worker.lock().await;
        sleep(cost).await;
        let mut response = Response::new(Body::default());
        *response.status_mut() = status;
        if status != StatusCode::OK {
            response.headers_mut().insert("retry-after-ms", 200.into());
        }
        Ok(response)
    }
}

async fn exchange(
    address: SocketAddr,
    request: Request<Body>,
) -> Result<Response<Incoming>, BoxError> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender.send_request(request).await?)
}

fn request() -> Request<Body> {
    let mut request = Request::new(Body::default());
    request.headers_mut().insert("host", http::HeaderValue::from_static("loopback"));
    request
}

/// As the usual loop has it: five tries, with this wait before the next.
async fn by_hand(address: SocketAddr, wait: impl Fn(u32) -> Duration) -> bool {
    for attempt in 0..5 {
        match exchange(address, request()).await {
            Ok(response) if response.status() == StatusCode::OK => return true,
            _ => sleep(wait(attempt)).await,
        }
    }
    false
}

async fn by_client(client: RetryClient, address: SocketAddr) -> bool {
    let service = tower::service_fn(move |request| exchange(address, request));
    // In doubt it may have started.
    let sent = client.send(&service, request(), Safety::Idempotent, |_| Failure::Lost);
    sent.await.is_ok_and(|answered| answered.value.status() == StatusCode::OK)
}

/// Sends at a fixed rate, whatever comes back, and says how it went.
async fn measure<F>(name: &str, send: impl Fn(SocketAddr) -> F) -> Result<(), BoxError>
where
    F: Future<Output = bool> + Send + 'static,
{
    let (server, address) = Server::start().await?;
    let mut ticks = interval(Duration::from_micros(1_000_000 / REQUESTS_PER_S));
    let mut requests = JoinSet::new();
    let start = Instant::now();
    for _ in 0..REQUESTS_PER_S * SECONDS {
        ticks.tick().await;
        requests.spawn(timeout(DEADLINE, send(address)));
    }
    let took_s = start.elapsed().as_secs_f64();
    let done =
        requests.join_all().await.into_iter().filter(|done| matches!(done, Ok(true))).count();
    let load = server.asked.load(Ordering::Relaxed) as f64 / (REQUESTS_PER_S * SECONDS) as f64;
    println!("{name:24} goodput {:6.0}/s   load {load:.2} tries a request", done as f64 / took_s);
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), BoxError> {
    measure("no retries", by_hand_once).await?;
    measure("at once, five times", |address| by_hand(address, |_| Duration::ZERO)).await?;
    let doubling = |attempt| Duration::from_millis(100) * 2_u32.pow(attempt);
    measure("doubling, no jitter", move |address| by_hand(address, doubling)).await?;
    let policy = RetryPolicy { deadline: DEADLINE, ..RetryPolicy::default() };
    let client = RetryClient::new(policy, BudgetLimits::default());
    measure("RetryClient", move |address| by_client(client.clone(), address)).await
}

async fn by_hand_once(address: SocketAddr) -> bool {
    exchange(address, request()).await.is_ok_and(|response| response.status() == StatusCode::OK)
}
