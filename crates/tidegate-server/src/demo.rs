//! Upstreams for trying the gateway out, started when none are configured. Each says in every answer that it
//! is a demonstration.

use crate::config::{Scheme, UpstreamTarget};
use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::thread;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::{Interval, interval, sleep};

const DEMO: HeaderName = HeaderName::from_static("x-tidegate-demo");

/// What a demonstration takes for its work when it is not told, and the longest that it can be told.
const WORK: Duration = Duration::from_millis(20);
const WORK_MAX: Duration = Duration::from_secs(60);

/// The running demonstration. Ends when dropped.
#[derive(Debug)]
pub struct Demo {
    addresses: Vec<SocketAddr>,
    _stop: oneshot::Sender<()>,
}

/// Ten events, one every fifth of a second.
struct Ticker {
    ticks: Interval,
    sent: u32,
}

/// What a demonstration answers.
enum DemoBody {
    Text(Option<Bytes>),
    Events(Box<Ticker>),
}

// === impl Demo ===

impl Demo {
    /// Starts this many on free loopback ports, on a thread of their own.
    ///
    /// # Errors
    ///
    /// When the system has no port or no thread left.
    pub fn start(count: usize) -> io::Result<Self> {
        let listeners = (0..count).map(|_| bind()).collect::<io::Result<Vec<_>>>()?;
        let addresses =
            listeners.iter().map(std::net::TcpListener::local_addr).collect::<Result<_, _>>()?;
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        thread::Builder::new().name("tidegate-demo".to_owned()).spawn(move || {
            runtime.block_on(async {
                for (index, listener) in listeners.into_iter().enumerate() {
                    tokio::spawn(serve(index + 1, listener));
                }
                // Resolves when `Demo` is dropped.
                let _ = stopped.await;
            });
        })?;
        Ok(Self { addresses, _stop: stop })
    }

    /// The demonstration as upstreams.
    #[must_use]
    pub fn targets(&self) -> Vec<UpstreamTarget> {
        let target = |address: &SocketAddr| UpstreamTarget {
            name: address.to_string(),
            scheme: Scheme::Http,
            host: address.ip().to_string(),
            port: address.port(),
        };
        self.addresses.iter().map(target).collect()
    }
}

fn bind() -> io::Result<std::net::TcpListener> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

async fn serve(number: usize, listener: std::net::TcpListener) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    loop {
        match listener.accept().await {
            Ok((tcp, _)) => {
                tokio::spawn(serve_connection(number, tcp));
            }
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn serve_connection(number: usize, tcp: TcpStream) {
    let service = service_fn(move |request| answer(number, request));
    let builder = auto::Builder::new(TokioExecutor::new());
    if let Err(error) = builder.serve_connection(TokioIo::new(tcp), service).await {
        tracing::debug!(%error, "a demonstration's connection ended");
    }
}

async fn answer(
    number: usize,
    request: Request<Incoming>,
) -> Result<Response<DemoBody>, Infallible> {
    let mut response = if request.uri().path() == "/events" {
        let mut response = Response::new(DemoBody::events());
        set(&mut response, header::CONTENT_TYPE, "text/event-stream");
        response
    } else {
        sleep(work(request.uri().query())).await;
        let text = serde_json::json!({
            "demo": format!("demo-{number}: answered by Tidegate's embedded demonstration, not by a server of yours"),
            "method": request.method().as_str(),
            "path": request.uri().path(),
        });
        let mut response = Response::new(DemoBody::Text(Some(Bytes::from(format!("{text}\n")))));
        set(&mut response, header::CONTENT_TYPE, "application/json");
        response
    };
    set(&mut response, DEMO, if number == 1 { "demo-1" } else { "demo-2" });
    Ok(response)
}

fn set(response: &mut Response<DemoBody>, name: HeaderName, value: &'static str) {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
}

/// `?ms=250` makes the work take 250 milliseconds.
fn work(query: Option<&str>) -> Duration {
    let asked = query.and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("ms=")));
    let millis = asked.and_then(|millis| millis.parse().ok()).map(Duration::from_millis);
    millis.unwrap_or(WORK).min(WORK_MAX)
}

// === impl DemoBody ===

impl DemoBody {
    fn events() -> Self {
        Self::Events(Box::new(Ticker { ticks: interval(Duration::from_millis(200)), sent: 0 }))
    }
}

impl Body for DemoBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Self::Text(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Self::Events(ticker) if ticker.sent == 10 => Poll::Ready(None),
            Self::Events(ticker) => {
                ready!(ticker.ticks.poll_tick(cx));
                ticker.sent += 1;
                let event = Bytes::from(format!("data: event {} of 10\n\n", ticker.sent));
                Poll::Ready(Some(Ok(Frame::data(event))))
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Text(text) => {
                SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64))
            }
            Self::Events(_) => SizeHint::default(),
        }
    }
}
