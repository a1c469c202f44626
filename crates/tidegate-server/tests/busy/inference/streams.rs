//! Streams through a gateway or straight to a server, and what their clients saw.

use crate::support::Client;
use http::StatusCode;
use http_body_util::BodyExt;
use serde_json::json;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tidegate_testkit::mock::{Mock, MockConfig};
use tokio::task::JoinSet;

/// A stream as its client saw it.
#[derive(Clone, Debug)]
pub struct Streamed {
    pub status: StatusCode,
    /// The name of the mock that sent it.
    pub server: Option<String>,
    /// The first piece of its body, and the time to it.
    pub first: Option<(Instant, Duration)>,
    /// True if it came to its end.
    pub is_whole: bool,
}

/// Tokens of each stream.
pub const TOKENS: u64 = 50;

/// A server of 8 sequences and 100 blocks, of which 8 such streams take 80. One takes about 0.75 s.
pub fn server(name: &str, change: impl FnOnce(&mut MockConfig)) -> Mock {
    let mut config = MockConfig { faults: true, ..MockConfig::small(name) };
    config.engine.kv_blocks = 100;
    config.engine.max_running = 8;
    config.engine.max_waiting = 65_536;
    config.engine.decode_ms_per_token = 10.0;
    change(&mut config);
    Mock::start(config).unwrap()
}

/// Streams a response from an address.
pub async fn stream(address: SocketAddr) -> Streamed {
    let client = Client::new(address);
    let body = json!({
        "model": "tidegate-mock", "stream": true, "max_tokens": TOKENS,
        "messages": [{"role": "user", "content": "abcd".repeat(100)}],
    });
    let sent = Instant::now();
    let request = crate::traffic::post(client, crate::traffic::CHAT, body.to_string());
    let none = Streamed { status: StatusCode::OK, server: None, first: None, is_whole: false };
    let Ok(response) = client.begin(request).await else {
        return Streamed { status: StatusCode::BAD_GATEWAY, ..none };
    };
    let status = response.status();
    let server = response.headers().get("x-tidegate-mock");
    let server = server.map(|name| name.to_str().unwrap().to_owned());
    let mut streamed = Streamed { status, server, ..none };
    let mut body = response.into_body();
    while let Some(frame) = body.frame().await {
        if frame.is_err() {
            return streamed;
        }
        streamed.first.get_or_insert((Instant::now(), sent.elapsed()));
    }
    streamed.is_whole = true;
    streamed
}

/// Sends so many in a second for as long as this, and waits for all of them.
pub async fn open_loop(address: SocketAddr, per_s: f64, time: Duration) -> Vec<Streamed> {
    let start = Instant::now();
    let mut streams = JoinSet::new();
    let mut next = Duration::ZERO;
    while next < time {
        tokio::time::sleep_until((start + next).into()).await;
        streams.spawn(stream(address));
        next += Duration::from_secs_f64(1.0 / per_s);
    }
    streams.join_all().await
}

/// Holds so many at once, each followed by another, until this moment. Returns those that ended by then.
pub async fn closed_loop(address: SocketAddr, at_once: usize, until: Instant) -> Vec<Streamed> {
    let mut clients = JoinSet::new();
    for _ in 0..at_once {
        clients.spawn(async move {
            let mut ended = Vec::new();
            while let Ok(one) = tokio::time::timeout_at(until.into(), stream(address)).await {
                if one.status != StatusCode::OK {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                ended.push(one);
            }
            ended
        });
    }
    clients.join_all().await.concat()
}
