//! Requests by the hundred, and gateways that are ready for them.

use crate::support::{Answer, Client, TestGateway};
use crate::upstream::Upstream;
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use serde_json::Value;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tidegate_testkit::mock::engine::EngineSettings;
use tidegate_testkit::mock::{Mock, MockConfig};
use tokio::task::JoinSet;

/// Requests that were sent together.
pub struct Flood {
    requests: JoinSet<Answer>,
}

// === impl Flood ===

impl Flood {
    /// Sends so many at once, each on its own connection.
    pub fn new(client: Client, count: usize, request: impl Fn() -> Request<Full<Bytes>>) -> Self {
        let mut flood = Self { requests: JoinSet::new() };
        flood.send(client, count, request);
        flood
    }

    /// The same, without a body.
    pub fn of_gets(client: Client, count: usize) -> Self {
        Self::new(client, count, || get(client, "/work"))
    }

    /// The next so many that are answered. Those that wait at an upstream are not.
    pub async fn answers(&mut self, count: usize) -> Vec<Answer> {
        let mut answers = Vec::new();
        while answers.len() < count {
            let next = tokio::time::timeout(BOUND, self.requests.join_next()).await;
            let next = next.unwrap_or_else(|_| panic!("only {} of {count} came", answers.len()));
            answers.push(next.expect("so many were sent").unwrap());
        }
        answers
    }

    /// Sends so many more.
    pub fn send(
        &mut self,
        client: Client,
        count: usize,
        request: impl Fn() -> Request<Full<Bytes>>,
    ) {
        for _ in 0..count {
            let request = request();
            self.requests.spawn(async move { client.send(request).await });
        }
    }

    /// All that are left.
    pub async fn rest(mut self) -> Vec<Answer> {
        self.answers(self.requests.len()).await
    }

    /// The clients of all that are left go away.
    pub async fn leave(mut self) {
        self.requests.shutdown().await;
    }
}

/// Only ends a test that has failed; none is judged by it.
const BOUND: Duration = Duration::from_secs(30);

/// A gateway in which no request waits: one that finds no slot is refused at once.
pub fn without_queue(toml: &str, upstreams: &[SocketAddr]) -> TestGateway {
    TestGateway::start(&format!("[queue]\nsize = 0\n{toml}"), upstreams)
}

/// Waits until the snapshots say so.
pub async fn until(gateway: &TestGateway, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let start = Instant::now();
    loop {
        let stats = gateway.stats().await;
        if holds(&stats) {
            return stats;
        }
        assert!(start.elapsed() < BOUND, "never came true: {what}\n{stats:#}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until every upstream's load is known.
pub async fn until_known(gateway: &TestGateway) {
    let known = |stats: &Value| {
        let upstreams = stats["upstreams"].as_array().unwrap();
        upstreams.iter().all(|upstream| upstream["load"]["load_known"] == true)
    };
    until(gateway, "the load of all is known", known).await;
}

/// What a request gets.
pub async fn status(gateway: &TestGateway) -> u16 {
    Client::new(gateway.address).get("/work").await.status.as_u16()
}

/// Waits until a request gets this status.
pub async fn until_status(gateway: &TestGateway, wanted: u16) {
    let start = Instant::now();
    while status(gateway).await != wanted {
        assert!(start.elapsed() < BOUND, "a request never got {wanted}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub fn addresses(upstreams: &[Upstream]) -> Vec<SocketAddr> {
    upstreams.iter().map(|upstream| upstream.address).collect()
}

/// Requests that upstreams have now, together.
pub fn active(upstreams: &[Upstream]) -> usize {
    upstreams.iter().map(Upstream::active).sum()
}

/// How many of these have a status.
pub fn count(answers: &[Answer], status: u16) -> usize {
    answers.iter().filter(|answer| answer.status == status).count()
}

pub fn get(client: Client, path: &str) -> Request<Full<Bytes>> {
    client.request("GET", path).body(Full::default()).unwrap()
}

pub fn post(client: Client, path: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let request = client.request("POST", path).header("content-type", "application/json");
    request.body(Full::new(body.into())).unwrap()
}

/// Posts JSON and reads the answer.
pub async fn post_json(address: SocketAddr, path: &str, body: &Value) -> Answer {
    let client = Client::new(address);
    client.send(post(client, path, body.to_string())).await
}

/// A request to a model.
pub fn chat(model: &str) -> Value {
    let messages = serde_json::json!([{"role": "user", "content": "hello"}]);
    serde_json::json!({"model": model, "messages": messages, "max_tokens": 4})
}

pub const CHAT: &str = "/v1/chat/completions";

/// An `[[upstream]]` of these models.
pub fn upstream_toml(upstream: &Upstream, models: &[&str]) -> String {
    format!("[[upstream]]\nurl = \"http://{}\"\nmodels = {models:?}\n", upstream.address)
}

/// A mock that decodes so fast that nobody waits for it.
pub fn fast_mock(change: impl FnOnce(&mut MockConfig)) -> Mock {
    let mut config = MockConfig { faults: true, ..MockConfig::small("mock-1") };
    config.engine =
        EngineSettings { prefill_tokens_per_s: 1e6, decode_ms_per_token: 0.1, ..config.engine };
    change(&mut config);
    Mock::start(config).unwrap()
}

/// One that takes minutes for every token, so that what it holds is held until it is let go.
pub fn slow_mock(change: impl FnOnce(&mut MockConfig)) -> Mock {
    fast_mock(|config| {
        config.engine.decode_ms_per_token = 60_000.0;
        change(config);
    })
}

/// Makes a mock go wrong.
pub async fn fault(mock: &Mock, change: &Value) {
    assert_eq!(post_json(mock.address(), "/mock/fault", change).await.status, 200);
}
