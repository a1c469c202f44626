//! Clients that ask for large responses and do not read them.

use crate::measure::{alone, descriptors, resident_kib};
use crate::support::{Client, RawUpstream, TestGateway, eventually};
use bytes::Bytes;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

const READERS: usize = 300;

/// A repeating pattern, so that a piece that is lost, doubled or moved shows.
const PATTERN: usize = 251;
pub const PIECE: usize = PATTERN * 64;

/// Memory of a reader at most: half of it waits for its socket, and half is both connections and their tasks.
const READER_KIB_MAX: u64 = 64;

/// The same of a stream of HTTP/2, both of whose ends are in this process.
const STREAM_KIB_MAX: u64 = 96;

/// The same behind an upstream of HTTP/2, which may send 128 KiB ahead of its client.
const READER_OF_H2_KIB_MAX: u64 = READER_KIB_MAX + 128;

fn piece() -> Bytes {
    static PIECES: [u8; PIECE] = {
        let mut bytes = [0; PIECE];
        let mut at = 0;
        while at < PIECE {
            bytes[at] = (at % PATTERN) as u8;
            at += 1;
        }
        bytes
    };
    Bytes::from_static(&PIECES)
}

fn is_pattern(body: &[u8], offset: usize) -> bool {
    body.iter().zip(offset..).all(|(byte, at)| usize::from(*byte) == at % PATTERN)
}

/// An upstream of HTTP/1.1 with this many pieces at every path but `/small`, and what it has written.
pub async fn large(pieces: usize) -> (RawUpstream, Arc<AtomicU64>) {
    let written = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&written);
    let upstream = RawUpstream::start(move |mut tcp| {
        let count = Arc::clone(&count);
        async move {
            while let Some(small) = asked_for_small(&mut tcp).await {
                let pieces = if small { 1 } else { pieces };
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", pieces * PIECE);
                let mut sent = tcp.write_all(head.as_bytes()).await;
                for _ in 0..pieces {
                    sent = sent.and(tcp.write_all(&piece()).await);
                    if sent.is_err() {
                        return;
                    }
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    })
    .await;
    (upstream, written)
}

async fn asked_for_small(tcp: &mut TcpStream) -> Option<bool> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(tcp.read_u8().await.ok()?);
    }
    Some(head.starts_with(b"GET /small"))
}

/// The same over HTTP/2.
async fn large_h2(pieces: usize) -> (std::net::SocketAddr, Arc<AtomicU64>) {
    let written = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&written);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (tcp, _) = listener.accept().await.unwrap();
            let count = Arc::clone(&count);
            tokio::spawn(async move {
                let mut builder = h2::server::Builder::new();
                builder.max_concurrent_streams(1_000);
                let Ok(mut connection) = builder.handshake::<_, Bytes>(tcp).await else { return };
                while let Some(Ok((request, respond))) = connection.accept().await {
                    let pieces = if request.uri().path() == "/small" { 1 } else { pieces };
                    tokio::spawn(answer_h2(respond, pieces, Arc::clone(&count)));
                }
            });
        }
    });
    (address, written)
}

async fn answer_h2(
    mut respond: h2::server::SendResponse<Bytes>,
    pieces: usize,
    count: Arc<AtomicU64>,
) {
    let head = http::Response::builder().header("content-length", pieces * PIECE);
    let Ok(mut body) = respond.send_response(head.body(()).unwrap(), false) else { return };
    for _ in 0..pieces {
        let mut rest = piece();
        while !rest.is_empty() {
            body.reserve_capacity(rest.len());
            let Some(Ok(room)) = std::future::poll_fn(|cx| body.poll_capacity(cx)).await else {
                return;
            };
            if body.send_data(rest.split_to(room.min(rest.len())), false).is_err() {
                return;
            }
        }
        count.fetch_add(1, Ordering::Relaxed);
    }
    let _ = body.send_data(Bytes::new(), true);
}

/// Waits until the upstream has written nothing more for a while: everything between it and the readers is full.
pub async fn stalled(written: &AtomicU64) {
    let (mut before, mut still) = (0, 0);
    while still < 5 {
        sleep(Duration::from_millis(200)).await;
        let now = written.load(Ordering::Relaxed);
        still = if now == before && now > 0 { still + 1 } else { 0 };
        before = now;
    }
}

async fn others_are_served(gateway: &TestGateway) {
    for client in [Client::new(gateway.address), Client::h2(gateway.address)] {
        for _ in 0..10 {
            let answer = timeout(Duration::from_secs(10), client.get("/small")).await;
            let answer = answer.expect("another client waits for the readers");
            assert_eq!((answer.status.as_u16(), answer.body.len()), (200, PIECE));
            assert_eq!(client.get("/health/live").await.status, 200);
        }
    }
}

/// A request for a large response.
pub const GET_LARGE: &[u8] = b"GET /large HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";

/// Asks for a large response and leaves it.
async fn ask(gateway: &TestGateway) -> TcpStream {
    let mut tcp = TcpStream::connect(gateway.address).await.unwrap();
    tcp.write_all(GET_LARGE).await.unwrap();
    tcp
}

/// Reads the response whole, and returns the length of its body.
pub async fn read_whole(mut tcp: impl AsyncRead + Unpin) -> usize {
    let mut buffer = vec![0; 64 * 1024];
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(tcp.read_u8().await.unwrap());
    }
    let mut length = 0;
    loop {
        match tcp.read(&mut buffer).await.unwrap() {
            0 => return length,
            read => {
                assert!(is_pattern(&buffer[..read], length), "at {length}");
                length += read;
            }
        }
    }
}

pub fn settings(upstream: &str, more: &str) -> String {
    // One thread, so that the readers share what can be shared, and the slots for all of them.
    format!(
        "{more}\n[admission]\nglobal_limit = 2000\nnormal_limit = 1000\n[listen]\nthreads = 1\n\
         [[upstream]]\nurl = \"{upstream}\"\n"
    )
}

async fn one_by_one(gateway: &TestGateway, written: &AtomicU64, pieces: usize, kib_max: u64) {
    others_are_served(gateway).await;
    let (before, open) = (resident_kib(), descriptors());
    let mut readers = ask_many(gateway, READERS).await;
    stalled(written).await;
    let each = resident_kib().saturating_sub(before) / READERS as u64;
    others_are_served(gateway).await;
    println!("{each} KiB for each reader");
    assert!(each <= kib_max, "{each} KiB for each of {READERS} readers");
    for reader in readers.drain(..3) {
        assert_eq!(read_whole(reader).await, pieces * PIECE);
    }
    drop(readers);
    gateway.balances().await;
    // What stays open are idle connections to the upstream.
    eventually("their descriptors are closed", || descriptors() < open + 10).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_stop_hold_little_and_one_that_resumes_gets_all() {
    let _alone = alone().await;
    let (upstream, written) = large(2_000).await;
    let gateway = TestGateway::start(&settings(&format!("http://{}", upstream.address), ""), &[]);
    one_by_one(&gateway, &written, 2_000, READER_KIB_MAX).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_stop_do_not_stop_an_upstream_of_http2() {
    let _alone = alone().await;
    let (upstream, written) = large_h2(2_000).await;
    let gateway = TestGateway::start(&settings(&format!("h2c://{upstream}"), ""), &[]);
    one_by_one(&gateway, &written, 2_000, READER_OF_H2_KIB_MAX).await;
}

/// A window that is too small makes an upstream that batches its writes wait for acknowledgements, 40 ms for each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_response_of_http2_is_about_as_fast_as_one_of_http1() {
    const PIECES: usize = 1_000;
    let _alone = alone().await;
    let (upstream, _) = large(PIECES).await;
    let (upstream_h2, _) = large_h2(PIECES).await;
    let mut durations = Vec::new();
    for url in [format!("http://{}", upstream.address), format!("h2c://{upstream_h2}")] {
        let gateway = TestGateway::start(&settings(&url, ""), &[]);
        read_whole(ask(&gateway).await).await;
        let start = Instant::now();
        assert_eq!(read_whole(ask(&gateway).await).await, PIECES * PIECE);
        durations.push(start.elapsed());
    }
    assert!(durations[1] < durations[0] * 5 + Duration::from_secs(1), "{durations:?}");
}

/// A socket that is not read from before the gate opens.
struct Gated {
    tcp: TcpStream,
    open: watch::Receiver<bool>,
    opened: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Gated {
    async fn connect(address: std::net::SocketAddr, open: watch::Receiver<bool>) -> Self {
        let mut seen = open.clone();
        let opened = Box::pin(async move { drop(seen.wait_for(|open| *open).await) });
        Self { tcp: TcpStream::connect(address).await.unwrap(), open, opened: Some(opened) }
    }
}

impl AsyncRead for Gated {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if !*this.open.borrow()
            && let Some(opened) = &mut this.opened
            && opened.as_mut().poll(cx).is_pending()
        {
            return Poll::Pending;
        }
        this.opened = None;
        Pin::new(&mut this.tcp).poll_read(cx, buf)
    }
}

impl AsyncWrite for Gated {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tcp).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}

/// Streams of one connection whose windows never close and whose socket is not read.
async fn ask_by_streams(
    gateway: &TestGateway,
    streams: usize,
    open: watch::Receiver<bool>,
) -> Vec<h2::client::ResponseFuture> {
    const WINDOW: u32 = (1 << 31) - 1;
    let io = Gated::connect(gateway.address, open).await;
    let mut builder = h2::client::Builder::new();
    builder.initial_window_size(WINDOW).initial_connection_window_size(WINDOW);
    let (mut sender, connection) = builder.handshake::<_, Bytes>(io).await.unwrap();
    tokio::spawn(connection);
    let mut responses = Vec::new();
    for _ in 0..streams {
        sender = sender.ready().await.unwrap();
        let request = http::Request::get("http://x/large").body(()).unwrap();
        responses.push(sender.send_request(request, true).unwrap().0);
    }
    responses
}

async fn read_stream(response: h2::client::ResponseFuture) -> Result<usize, h2::Error> {
    let mut body = response.await?.into_body();
    let mut length = 0;
    while let Some(data) = body.data().await {
        let data = data?;
        assert!(is_pattern(&data, length), "at {length}");
        length += data.len();
        let _ = body.flow_control().release_capacity(data.len());
    }
    Ok(length)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_that_stop_hold_little_and_those_that_resume_get_all() {
    const PIECES: usize = 200;
    let _alone = alone().await;
    let (upstream, written) = large(PIECES).await;
    let gateway = TestGateway::start(&settings(&format!("http://{}", upstream.address), ""), &[]);
    others_are_served(&gateway).await;
    let before = resident_kib();
    let gates = [false; 3].map(|open| watch::channel(open).0);
    let mut connections = Vec::new();
    for gate in &gates {
        connections.push(ask_by_streams(&gateway, READERS / 3, gate.subscribe()).await);
    }
    stalled(&written).await;
    let each = resident_kib().saturating_sub(before) / READERS as u64;
    println!("{each} KiB for each stream");
    assert!(each <= STREAM_KIB_MAX, "{each} KiB for each of {READERS} streams");
    others_are_served(&gateway).await;
    gates[0].send_replace(true);
    let resumed = connections.remove(0).into_iter().map(read_stream);
    for length in futures_util::future::join_all(resumed).await {
        assert_eq!(length.unwrap(), PIECES * PIECE);
    }
    drop((connections, gates));
    gateway.balances().await;
}

/// A series without labels on the metrics page.
async fn series(gateway: &TestGateway, name: &str) -> u64 {
    let page = Client::new(gateway.admin).get("/metrics").await;
    let mut lines = page.text().lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("no {name}")).parse().unwrap()
}

async fn is_within_its_budget(gateway: &TestGateway, mib: u64) {
    for _ in 0..500 {
        if series(gateway, "tidegate_response_buffer_bytes").await <= mib << 20 {
            return;
        }
        sleep(Duration::from_millis(20)).await;
    }
    panic!("more than {mib} MiB wait for clients");
}

/// Returns true if the gateway has closed the connection before the response was whole.
async fn was_closed(mut tcp: TcpStream, whole: usize) -> bool {
    let mut length = 0;
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = tcp.read(&mut buffer).await {
        length += read;
    }
    length < whole
}

async fn ask_many(gateway: &TestGateway, readers: usize) -> Vec<TcpStream> {
    let mut asked = Vec::new();
    for _ in 0..readers {
        asked.push(ask(gateway).await);
    }
    asked
}

/// A reader holds 32 to 63 KiB: 45 are within 4 MiB, 55 are too, and 100 of them that hold 48 KiB are not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beyond_the_budget_the_slowest_reader_is_let_go_first() {
    const PIECES: usize = 600;
    let _alone = alone().await;
    let (upstream, written) = large(PIECES).await;
    let config = settings(&format!("http://{}", upstream.address), "[proxy]\nbuffer_mib = 4");
    let gateway = TestGateway::start(&config, &[]);
    let early = ask_many(&gateway, 45).await;
    stalled(&written).await;
    assert_eq!(series(&gateway, "tidegate_slow_readers_closed_total").await, 0);
    let late = ask_many(&gateway, 55).await;
    stalled(&written).await;
    is_within_its_budget(&gateway, 4).await;
    others_are_served(&gateway).await;
    let closed = series(&gateway, "tidegate_slow_readers_closed_total").await;
    for reader in late {
        assert_eq!(read_whole(reader).await, PIECES * PIECE, "{closed} were closed");
    }
    let mut broken = 0;
    for reader in early {
        broken += u64::from(was_closed(reader, PIECES * PIECE).await);
    }
    assert!(closed > 0, "none was closed");
    let closed = series(&gateway, "tidegate_slow_readers_closed_total").await;
    assert_eq!(broken, closed, "those that had stopped first were closed, and no others");
    gateway.balances().await;
    assert_eq!(series(&gateway, "tidegate_response_buffer_bytes").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_that_hold_more_than_the_budget_are_let_go_with_their_connection() {
    let _alone = alone().await;
    let (upstream, written) = large(1_000).await;
    let config = settings(&format!("http://{}", upstream.address), "[proxy]\nbuffer_mib = 4");
    let gateway = TestGateway::start(&config, &[]);
    let gate = watch::channel(false).0;
    let streams = ask_by_streams(&gateway, 100, gate.subscribe()).await;
    stalled(&written).await;
    is_within_its_budget(&gateway, 4).await;
    others_are_served(&gateway).await;
    gate.send_replace(true);
    let ends = futures_util::future::join_all(streams.into_iter().map(read_stream)).await;
    assert!(ends.iter().all(Result::is_err), "{ends:?}");
    assert_eq!(series(&gateway, "tidegate_slow_readers_closed_total").await, 1);
    gateway.balances().await;
}
