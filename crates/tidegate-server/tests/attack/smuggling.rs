//! Requests that two servers could read in two ways. Whatever a client sends, an upstream gets one request for
//! each that the gateway answered, with one framing, and the next client gets its own response.

use crate::measure::alone;
use crate::recorder::{Recorded, Recorder};
use crate::support::{Client, TestGateway};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Allowed outcomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Answered with an error or not at all, and the connection ends: nobody knows where another request would
    /// begin.
    Refused,
    /// Answered with an error. Its end is known, so what follows is a request of its own.
    Answered,
    /// One request with this body.
    Passed(&'static str),
    /// The same, and the connection ends: another server might see another end of it (RFC 9112, section 6.3).
    PassedLast(&'static str),
}

use Fate::{Answered, Passed, PassedLast, Refused};

/// Smuggled part of a request, which must never be a request of its own.
const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nhost: x\r\n\r\n";

/// Fields of a POST request, its body, and what must come of it.
const POSTS: [(&str, &str, Fate); 54] = [
    // Both framings.
    ("content-length: 5\r\ntransfer-encoding: chunked", "0\r\n\r\n", PassedLast("")),
    ("transfer-encoding: chunked\r\ncontent-length: 5", "0\r\n\r\n", PassedLast("")),
    (
        "content-length: 0\r\ntransfer-encoding: chunked",
        "5\r\nhello\r\n0\r\n\r\n",
        PassedLast("hello"),
    ),
    // Transfer codings that are not quite `chunked`.
    ("transfer-encoding: Chunked", "5\r\nhello\r\n0\r\n\r\n", Passed("hello")),
    ("transfer-encoding:\tchunked", "5\r\nhello\r\n0\r\n\r\n", Passed("hello")),
    ("transfer-encoding: xchunked", "5\r\nhello\r\n0\r\n\r\n", Refused),
    ("transfer-encoding : chunked", "5\r\nhello\r\n0\r\n\r\n", Refused),
    ("transfer-encoding: chunked\r\ntransfer-encoding: x", "0\r\n\r\n", Refused),
    ("transfer-encoding: x\r\ntransfer-encoding: chunked", "0\r\n\r\n", Refused),
    ("transfer-encoding: chunked, identity", "0\r\n\r\n", Refused),
    ("transfer-encoding: identity, chunked", "0\r\n\r\n", Refused),
    ("transfer-encoding: chunked, chunked", "0\r\n\r\n", Refused),
    ("transfer-encoding: identity", "hello", Refused),
    ("transfer-encoding: \"chunked\"", "0\r\n\r\n", Refused),
    ("transfer-encoding: chunked;q=1", "0\r\n\r\n", Refused),
    ("transfer-encoding: \u{b}chunked", "0\r\n\r\n", Refused),
    ("transfer-encoding: chunked\0", "0\r\n\r\n", Refused),
    ("transfer-encoding:", "0\r\n\r\n", Refused),
    ("transfer-encoding\n: chunked", "0\r\n\r\n", Refused),
    ("x: y\r\n transfer-encoding: chunked", "0\r\n\r\n", Refused),
    ("transfer-encoding:\r\n chunked", "0\r\n\r\n", Refused),
    ("transfer_encoding: chunked", "", Passed("")),
    // Lengths that are none, or several.
    ("content-length: 5", "hello", Passed("hello")),
    ("content-length: 5\r\ncontent-length: 6", "hello", Refused),
    ("content-length: 5\r\ncontent-length: 5", "hello", Passed("hello")),
    ("content-length: 5, 5", "hello", Refused),
    ("content-length: 5, 6", "hello", Refused),
    ("content-length: +5", "hello", Refused),
    ("content-length: -5", "hello", Refused),
    ("content-length: 5 5", "hello", Refused),
    ("content-length: 5;", "hello", Refused),
    ("content-length: 0x5", "hello", Refused),
    ("content-length: 5\0", "hello", Refused),
    ("content-length:", "hello", Refused),
    ("content-length: 18446744073709551621", "hello", Refused),
    ("content-length : 5", "hello", Refused),
    ("content-length:\r\n 5", "hello", Refused),
    // Chunks.
    ("transfer-encoding: chunked", "5;a=b\r\nhello\r\n0\r\n\r\n", Passed("hello")),
    ("transfer-encoding: chunked", "5;a\n\r\nhello\r\n0\r\n\r\n", Refused),
    ("transfer-encoding: chunked", "5\nhello\n0\n\n", Refused),
    ("transfer-encoding: chunked", "0x5\r\nhello\r\n0\r\n\r\n", Refused),
    ("transfer-encoding: chunked", "+5\r\nhello\r\n0\r\n\r\n", Refused),
    ("transfer-encoding: chunked", "-1\r\nhello\r\n0\r\n\r\n", Refused),
    ("transfer-encoding: chunked", "10000000000000005\r\nhello\r\n0\r\n\r\n", Refused),
    ("transfer-encoding: chunked", "\r\nhello\r\n0\r\n\r\n", Refused),
    ("transfer-encoding: chunked", "5\r\nhelloX\r\n0\r\n\r\n", Refused),
    ("transfer-encoding: chunked", "5\r\nhello0\r\n\r\n", Refused),
    ("transfer-encoding: chunked", "0\r\ncontent-length: 50\r\n\r\n", Passed("")),
    // Fields that a hop would take away.
    ("content-length: 5\r\nconnection: content-length", "hello", Passed("hello")),
    ("transfer-encoding: chunked\r\nconnection: transfer-encoding", "0\r\n\r\n", Passed("")),
    ("content-length: 5\r\nconnection: host", "hello", Passed("hello")),
    ("content-length: 5\r\nte: chunked", "hello", Passed("hello")),
    // Upgrades that nobody agreed to.
    ("content-length: 5\r\nupgrade: h2c\r\nconnection: upgrade", "hello", Passed("hello")),
    ("content-length: 5\r\nupgrade: websocket", "hello", Passed("hello")),
];

/// Whole requests, and what must come of each.
const REQUESTS: [(&str, Fate); 24] = [
    ("GET /p HTTP/1.1\nhost: x\n\n", Passed("")),
    ("GET /p HTTP/1.1\r\nhost: x\r\nx: a\rb\r\n\r\n", Refused),
    ("GET /p HTTP/1.1\r\nhost: x\r\nx: a\0b\r\n\r\n", Refused),
    ("GET /p HTTP/1.1\r\nhost: x\r\nx\0y: a\r\n\r\n", Refused),
    ("GET /p HTTP/1.1\r\nhost: x\r\nx y: a\r\n\r\n", Refused),
    ("GET /p HTTP/1.1\r\nhost: x\r\nno colon\r\n\r\n", Refused),
    ("GET /p HTTP/1.1\r\n host: x\r\n\r\n", Refused),
    ("GET /p HTTP/1.1\r\nhost: x\r\n: a\r\n\r\n", Refused),
    ("GET /p HTTP/1.1\r\nhost: x\r\nhost: y\r\n\r\n", Answered),
    ("GET /p HTTP/1.1\r\n\r\n", Answered),
    ("GET /p HTTP/1.1\r\nhost : x\r\n\r\n", Refused),
    ("GET /p\r\n\r\n", Refused),
    ("GET /p HTTP/1.2\r\nhost: x\r\n\r\n", Refused),
    ("GET /p HTTP/11\r\nhost: x\r\n\r\n", Refused),
    ("GET /p\tHTTP/1.1\r\nhost: x\r\n\r\n", Refused),
    ("GET /p /q HTTP/1.1\r\nhost: x\r\n\r\n", Refused),
    ("GET /p\0 HTTP/1.1\r\nhost: x\r\n\r\n", Refused),
    ("G\0T /p HTTP/1.1\r\nhost: x\r\n\r\n", Refused),
    ("\r\nGET /p HTTP/1.1\r\nhost: x\r\n\r\n", Passed("")),
    ("GET http://x/p HTTP/1.1\r\nhost: y\r\n\r\n", Passed("")),
    ("POST /p HTTP/1.0\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", Refused),
    ("POST /p HTTP/1.0\r\nhost: x\r\ncontent-length: 5\r\n\r\nhello", Passed("hello")),
    ("GET /p HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhello", Passed("hello")),
    ("CONNECT /p HTTP/1.1\r\nhost: x\r\n\r\n", Answered),
];

/// Sends bytes, closes its side, and reads the responses without those that are informational.
async fn send(gateway: &TestGateway, bytes: &[u8]) -> String {
    let mut tcp = TcpStream::connect(gateway.address).await.unwrap();
    let _ = tcp.write_all(bytes).await;
    // A client of HTTP/1.0 that closes its side is taken for gone, and its connection ends by itself.
    if !bytes.windows(8).any(|word| word == b"HTTP/1.0") {
        let _ = tcp.shutdown().await;
    }
    let mut answer = Vec::new();
    let read = timeout(Duration::from_secs(20), tcp.read_to_end(&mut answer)).await;
    assert!(read.is_ok(), "no end after {:?}", String::from_utf8_lossy(bytes));
    String::from_utf8_lossy(&answer).replace("HTTP/1.1 100 Continue\r\n\r\n", "")
}

fn has_one_framing(request: &Recorded) -> bool {
    let lengths = request.field("content-length");
    let codings = request.field("transfer-encoding");
    let clean = |line: &str| !line.contains(['\r', '\n', '\0']);
    lengths.len() + codings.len() <= 1
        && codings.iter().all(|coding| *coding == "chunked")
        && request.head.split("\r\n").all(clean)
        && request.field("host").len() == 1
}

/// Sends one request, with and without what it would smuggle, and returns what is wrong, if anything is.
async fn attack(
    (gateway, upstream): (&TestGateway, &Recorder),
    request: &str,
    fate: Fate,
) -> Result<(), String> {
    let answer = send(gateway, request.as_bytes()).await;
    let seen = upstream.take();
    let status = answer.split(' ').nth(1).unwrap_or("none").to_owned();
    let told = format!("{request:?} got {status}, and the upstream {seen:?}");
    match (fate, seen.as_slice()) {
        (Refused | Answered, []) if status.starts_with(['4', '5']) || answer.is_empty() => {}
        (Passed(body) | PassedLast(body), [one])
            if status == "200" && one.body == body.as_bytes() => {}
        _ => return Err(told),
    }
    if !seen.iter().all(has_one_framing) {
        return Err(format!("not one framing: {told}"));
    }
    let after = Client::new(gateway.address).get("/after").await;
    let next = upstream.take();
    if after.text() != "/after" || next.len() != 1 {
        return Err(format!("the next client got {:?}: {told}, then {next:?}", after.text()));
    }
    Ok(())
}

#[tokio::test]
async fn no_request_becomes_two_and_none_moves_into_another() {
    let _alone = alone().await;
    let upstream = Recorder::start().await;
    let gateway = TestGateway::start("[listen]\nthreads = 1\n", &[upstream.address]);
    let posts = POSTS.iter().map(|(fields, body, fate)| {
        (format!("POST /p HTTP/1.1\r\nhost: x\r\n{fields}\r\n\r\n{body}"), *fate)
    });
    let requests = REQUESTS.iter().map(|(request, fate)| ((*request).to_owned(), *fate));
    let mut wrong = Vec::new();
    for (request, fate) in posts.chain(requests) {
        if let Err(told) = attack((&gateway, &upstream), &request, fate).await {
            wrong.push(told);
        }
        if matches!(fate, Refused | PassedLast(_)) {
            send(&gateway, format!("{request}{SMUGGLED}").as_bytes()).await;
            let seen = upstream.take();
            if seen.iter().any(|request| request.target() == "/smuggled") {
                wrong.push(format!("{request:?} smuggled {seen:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    gateway.balances().await;
}

#[tokio::test]
async fn a_body_that_looks_like_a_request_is_a_body() {
    let _alone = alone().await;
    let upstream = Recorder::start().await;
    let gateway = TestGateway::start("[listen]\nthreads = 1\n", &[upstream.address]);
    let length = SMUGGLED.len();
    let counted = format!("content-length: {length}\r\n\r\n{SMUGGLED}");
    let chunked =
        format!("transfer-encoding: chunked\r\n\r\n{length:x}\r\n{SMUGGLED}\r\n0\r\n\r\n");
    for method in ["GET", "HEAD", "OPTIONS", "DELETE", "POST"] {
        for body in [&counted, &chunked] {
            let request = format!("{method} /p HTTP/1.1\r\nhost: x\r\n{body}");
            send(&gateway, request.as_bytes()).await;
            let seen = upstream.take();
            assert!(matches!(&*seen, [one] if one.body == SMUGGLED.as_bytes()), "{seen:?}");
            assert_eq!(Client::new(gateway.address).get("/after").await.text(), "/after");
            upstream.take();
        }
    }
}

#[tokio::test]
async fn requests_that_follow_each_other_get_their_own_responses() {
    let _alone = alone().await;
    let upstream = Recorder::start().await;
    let gateway = TestGateway::start("[listen]\nthreads = 1\n", &[upstream.address]);
    let one = "POST /one HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhello";
    let two = "GET /two HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let answer = send(&gateway, format!("{one}{two}").as_bytes()).await;
    let (first, second) = (answer.find("/one"), answer.find("/two"));
    assert!(first.is_some() && first < second, "{answer}");
    assert_eq!(upstream.take().len(), 2);
}
