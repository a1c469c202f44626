//! A mock on a free port, and a client that opens a connection a request.

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tidegate_testkit::mock::engine::EngineSettings;
use tidegate_testkit::mock::{MetricsStyle, Mock, MockConfig};
use tokio::net::TcpStream;

/// A mock that ends with its test.
pub struct TestMock {
    mock: Mock,
    h2: bool,
}

/// An answer, read whole.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// A body that does not say how long it is.
pub struct Unmeasured(pub Full<Bytes>);

/// One that decodes so fast that nobody waits for it.
pub fn fast() -> MockConfig {
    let small = MockConfig::small("mock-1");
    let engine =
        EngineSettings { prefill_tokens_per_s: 1e6, decode_ms_per_token: 0.1, ..small.engine };
    MockConfig { engine, faults: true, ..small }
}

/// One that takes minutes for every token, so that what it holds is held until it is let go.
pub fn slow() -> MockConfig {
    let fast = fast();
    let engine = EngineSettings { decode_ms_per_token: 60_000.0, ..fast.engine };
    MockConfig { engine, ..fast }
}

/// A request for so many tokens.
pub fn chat(max_tokens: u64) -> Value {
    let messages = json!([{"role": "user", "content": "hello"}]);
    json!({"model": "tidegate-mock", "messages": messages, "max_tokens": max_tokens})
}

/// The same, streamed.
pub fn streamed(max_tokens: u64) -> Value {
    let mut chat = chat(max_tokens);
    chat["stream"] = json!(true);
    chat
}

/// A text prompt of so many tokens.
pub fn text(prompt_tokens: usize, max_tokens: u64) -> Value {
    let prompt = "abcd".repeat(prompt_tokens);
    json!({"model": "tidegate-mock", "prompt": prompt, "max_tokens": max_tokens})
}

pub const CHAT: &str = "/v1/chat/completions";
pub const TEXT: &str = "/v1/completions";

// === impl Unmeasured ===

impl Body for Unmeasured {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.0).poll_frame(cx)
    }
}

// === impl TestMock ===

impl TestMock {
    pub fn start(config: MockConfig) -> Self {
        Self { mock: Mock::start(config).unwrap(), h2: false }
    }

    /// One whose metrics a test can read without knowing a server by name.
    pub fn start_observable(config: MockConfig) -> Self {
        Self::start(MockConfig { metrics: MetricsStyle::Tidegate, ..config })
    }

    /// Speaks HTTP/2 with prior knowledge from now on.
    pub fn over_h2(self) -> Self {
        Self { h2: true, ..self }
    }

    pub fn address(&self) -> SocketAddr {
        self.mock.address()
    }

    /// Sets faults, and answers which stood when that was done.
    pub async fn fault(&self, change: Value) -> Value {
        let answer = self.post("/mock/fault", &change).await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        answer.json()
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "").await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, &[], &body.to_string()).await
    }

    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        Answer::read(self.begin(method, path, headers, body).await).await
    }

    /// Returns when the head of the answer is here. Dropping it closes the connection.
    pub async fn begin(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response<Incoming> {
        let address = self.mock.address();
        let uri = if self.h2 { format!("http://{address}{path}") } else { path.to_owned() };
        let mut request = Request::builder().method(method).uri(uri);
        if !self.h2 {
            request = request.header("host", address.to_string());
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = Full::new(Bytes::copy_from_slice(body.as_bytes()));
        self.begin_request(request.body(body).unwrap()).await
    }

    /// The same with any body.
    pub async fn begin_request<B>(&self, request: Request<B>) -> Response<Incoming>
    where
        B: Body<Data = Bytes, Error = Infallible> + Unpin + Send + 'static,
    {
        let io = TokioIo::new(TcpStream::connect(self.mock.address()).await.unwrap());
        if self.h2 {
            let (mut sender, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
            tokio::spawn(connection);
            sender.send_request(request).await.unwrap()
        } else {
            let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
            tokio::spawn(connection);
            sender.send_request(request).await.unwrap()
        }
    }

    /// A gauge of a rank, by the metrics in our own style.
    pub async fn gauge(&self, name: &str, rank: usize) -> f64 {
        let page = self.get("/metrics").await;
        let series = format!("tidegate_upstream_{name}{{rank=\"{rank}\"}} ");
        let line = page.text().lines().find_map(|line| line.strip_prefix(&series));
        line.unwrap_or_else(|| panic!("no {series} in {}", page.text())).parse().unwrap()
    }

    /// Waits until a gauge has a value. The bound only ends a test that has failed.
    pub async fn until(&self, name: &str, rank: usize, value: f64) {
        let start = Instant::now();
        while self.gauge(name, rank).await != value {
            assert!(start.elapsed() < Duration::from_secs(30), "{name} never was {value}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

// === impl Answer ===

impl Answer {
    pub async fn read(response: Response<Incoming>) -> Self {
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Self { status: parts.status, headers: parts.headers, body }
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("no {name}: {self:?}")).to_str().unwrap()
    }

    /// The events of a stream, without the last, which has to say that it is the last.
    pub fn events(&self) -> Vec<Value> {
        let mut events: Vec<_> = self
            .text()
            .split_terminator("\n\n")
            .map(|event| event.strip_prefix("data: ").unwrap())
            .collect();
        assert_eq!(events.pop(), Some("[DONE]"), "{}", self.text());
        events.iter().map(|event| serde_json::from_str(event).unwrap()).collect()
    }
}
