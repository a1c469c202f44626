//! The log about an upstream that flaps: a few lines and a summary. In a process of its own, because it reads the
//! log of all threads.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tidegate_server::config::Config;
use tidegate_server::gateway::Gateway;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

const FLAPS: usize = 20;

/// Only ends a test that has failed.
const BOUND: Duration = Duration::from_secs(60);

/// The events about upstreams that go up and down.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Line>>>);

#[derive(Clone, Debug, Default)]
struct Line {
    message: String,
    changes: u64,
    state: String,
}

// === impl Log ===

impl Log {
    fn lines(&self, start: &str) -> Vec<Line> {
        let lines = self.0.lock().unwrap();
        lines.iter().filter(|line| line.message.starts_with(start)).cloned().collect()
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        if line.message.starts_with("upstream") {
            self.0.lock().unwrap().push(line);
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

// === impl Line ===

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "changes" {
            self.changes = value;
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "state" {
            value.clone_into(&mut self.state);
        }
    }
}

/// Listens on an address that was in use a moment ago.
fn listen(address: SocketAddr) -> TcpListener {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(address).unwrap();
    socket.listen(16).unwrap()
}

/// Answers every connection once and closes it.
async fn answer(listener: TcpListener) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let _ = stream.read(&mut [0; 4096]).await;
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        let _ = stream.write_all(answer).await;
    }
}

/// Returns the status of a request.
async fn status(gateway: SocketAddr) -> u16 {
    let mut stream = TcpStream::connect(gateway).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upstream_that_flaps_logs_a_few_lines_and_a_summary() {
    let log = Log::default();
    tracing::subscriber::set_global_default(log.clone()).unwrap();
    let upstream = listen("127.0.0.1:0".parse().unwrap());
    let address = upstream.local_addr().unwrap();
    let toml =
        format!("[routing]\nload_source = \"headers\"\n[[upstream]]\nurl = \"http://{address}\"\n");
    let mut config = Config::from_toml(&toml).unwrap();
    config.listen.address = "127.0.0.1:0".parse().unwrap();
    config.listen.admin_address = "127.0.0.1:0".parse().unwrap();
    let gateway = Gateway::start(config).unwrap();
    let start = Instant::now();
    let mut serving = tokio::spawn(answer(upstream));
    for _ in 0..FLAPS {
        while status(gateway.address()).await != 200 {}
        serving.abort();
        assert!(serving.await.unwrap_err().is_cancelled());
        while status(gateway.address()).await == 200 {}
        serving = tokio::spawn(answer(listen(address)));
    }
    while status(gateway.address()).await != 200 {}
    let periods = start.elapsed().as_secs() / 10 + 1;
    let told = |log: &Log| log.lines("upstream is").len();
    assert!(told(&log) <= 4 * periods as usize, "{:?}", log.lines(""));
    let summed =
        |log: &Log| log.lines("upstream flaps").iter().map(|line| line.changes).sum::<u64>();
    while told(&log) as u64 + summed(&log) < 2 * FLAPS as u64 {
        assert!(start.elapsed() < BOUND, "{:?}", log.lines(""));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let last = log.lines("upstream flaps").pop().unwrap();
    assert_eq!(last.state, "up", "{last:?}");
    serving.abort();
    gateway.shutdown();
}
