//! The same over real sockets: a refusing server, a dead one, and one that resets what it has read.

use crate::reserved::Reserved;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tidegate::retry::{
    BudgetLimits, Decorrelated, Failure, GiveUpReason, HttpFailure, RetryClient, RetryPolicy,
    Safety,
};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

type Body = Full<Bytes>;

/// Waits of milliseconds: these tests run on the real clock.
const QUICK: RetryPolicy = RetryPolicy {
    attempts_max: 5,
    deadline: Duration::from_secs(30),
    backoff: Decorrelated { base: Duration::from_millis(1), cap: Duration::from_millis(20) },
    retry_on: tidegate::retry::RetryOn::Lost,
};

/// What can go wrong with one exchange, told apart by when it did.
#[derive(Debug)]
enum ExchangeError {
    Connect(io::Error),
    Http(hyper::Error),
}

fn classify(error: &ExchangeError) -> Failure {
    match error {
        ExchangeError::Connect(_) => Failure::Unreachable,
        ExchangeError::Http(_) => Failure::Lost,
    }
}

/// One request on a connection of its own.
async fn exchange(
    address: SocketAddr,
    request: Request<Body>,
) -> Result<Response<Incoming>, ExchangeError> {
    let stream = TcpStream::connect(address).await.map_err(ExchangeError::Connect)?;
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(ExchangeError::Http)?;
    tokio::spawn(connection);
    sender.send_request(request).await.map_err(ExchangeError::Http)
}

fn request() -> Request<Body> {
    Request::post("/").header("host", "loopback").body(Body::from("work")).expect("a request")
}

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("it is bound");
    (listener, address)
}

/// A server that answers the n-th request with what `answer` makes of n.
async fn server(answer: impl Fn(u64) -> Response<Body> + Clone + Send + 'static) -> Server {
    let (listener, address) = listen().await;
    let asked = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (answer, counter) = (answer.clone(), Arc::clone(&counter));
            let service = service_fn(move |_request| {
                let answer = answer(counter.fetch_add(1, Ordering::SeqCst));
                async move { Ok::<_, Infallible>(answer) }
            });
            let http = hyper::server::conn::http1::Builder::new();
            tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
        }
    });
    Server { address, asked }
}

struct Server {
    address: SocketAddr,
    asked: Arc<AtomicU64>,
}

fn refusal(wait_ms: u64) -> Response<Body> {
    let answer = Response::builder().status(503).header("retry-after", wait_ms.div_ceil(1_000));
    answer.header("retry-after-ms", wait_ms).body(Body::default()).expect("a response")
}

#[tokio::test]
async fn a_server_that_refuses_is_asked_again_when_it_said() {
    let server =
        server(|nth| if nth < 2 { refusal(150) } else { Response::new(Body::from("done")) }).await;
    let client = RetryClient::new(QUICK, BudgetLimits::default());
    let address = server.address;
    let service = tower::service_fn(move |request| exchange(address, request));
    let start = Instant::now();
    let sent = client.send(&service, request(), Safety::Once, classify).await;
    let answered = sent.expect("the third is answered");
    assert_eq!(answered.attempts, 3);
    assert!(start.elapsed() >= Duration::from_millis(300), "{:?}", start.elapsed());
    assert_eq!(server.asked.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_server_that_refuses_all_sees_the_first_tries_and_a_fifth_more() {
    let server = server(|_| refusal(5)).await;
    let limits = BudgetLimits { floor_per_s: 0.0, ..BudgetLimits::default() };
    let client = RetryClient::new(QUICK, limits);
    let address = server.address;
    let mut senders = JoinSet::new();
    for _ in 0..20 {
        let client = client.clone();
        senders.spawn(async move {
            let service = tower::service_fn(move |request| exchange(address, request));
            for _ in 0..50 {
                let sent = client.send(&service, request(), Safety::Once, classify).await;
                let stopped = sent.expect_err("it refuses all");
                assert!(matches!(stopped.last, Some(HttpFailure::Refused(_))), "{stopped:?}");
                assert!(stopped.unsent.is_some(), "a refused request comes back");
            }
        });
    }
    senders.join_all().await;
    let asked = server.asked.load(Ordering::SeqCst);
    assert!((1_001..=1_200).contains(&asked), "{asked} for 1,000");
}

#[tokio::test]
async fn a_server_that_is_not_there_gives_the_request_back() {
    let nobody = Reserved::new();
    let address = nobody.address;
    let client = RetryClient::new(QUICK, BudgetLimits::default());
    let service = tower::service_fn(move |request| exchange(address, request));
    let sent = client.send(&service, request(), Safety::Once, classify).await;
    let stopped = sent.expect_err("nobody is there");
    assert_eq!((stopped.attempts, stopped.why), (5, GiveUpReason::Attempts));
    let Some(HttpFailure::Error(ExchangeError::Connect(error))) = stopped.last else {
        panic!("there was no connection");
    };
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    assert!(stopped.unsent.is_some());
}

#[tokio::test]
async fn what_was_read_and_reset_is_repeated_only_if_it_may_run_twice() {
    let (listener, address) = listen().await;
    let read = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&read);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = [0; 16];
            if stream.read_exact(&mut head).await.is_ok() {
                counter.fetch_add(1, Ordering::SeqCst);
            }
            // What is unread when a socket closes resets the connection.
            drop(stream);
        }
    });
    let client = RetryClient::new(QUICK, BudgetLimits::default());
    let service = tower::service_fn(move |request| exchange(address, request));
    for (safety, tries, why) in [
        (Safety::Once, 1, GiveUpReason::MayHaveStarted),
        (Safety::Idempotent, 5, GiveUpReason::Attempts),
    ] {
        let before = read.load(Ordering::SeqCst);
        let sent = client.send(&service, request(), safety, classify).await;
        let stopped = sent.expect_err("it resets all");
        assert_eq!((stopped.attempts, stopped.why), (tries, why));
        assert!(stopped.unsent.is_none(), "it may have started");
        let Some(HttpFailure::Error(ExchangeError::Http(error))) = stopped.last else {
            panic!("there was a connection");
        };
        assert!(!error.is_timeout(), "{error}");
        assert_eq!(read.load(Ordering::SeqCst) - before, u64::from(tries));
    }
}
