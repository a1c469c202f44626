//! A rejection is decided by the head: it does not wait for the body, and what it leaves of the connection follows
//! the rules of HTTP.

use crate::support::{Answer, Client, TestGateway, eventually};
use crate::traffic::{Flood, post, without_queue};
use crate::upstream::Upstream;
use bytes::Bytes;
use http_body_util::{BodyExt, Channel};
use std::convert::Infallible;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const MEGABYTE: usize = 1_000_000;

/// A gateway whose one place is taken.
async fn busy_gateway() -> (Upstream, TestGateway, Flood) {
    let upstream = Upstream::closed().await;
    let gateway = without_queue("[routing]\nactive_requests_threshold = 1\n", &[upstream.address]);
    let held = Flood::of_gets(Client::new(gateway.address), 1);
    eventually("the place is taken", || upstream.active() == 1).await;
    (upstream, gateway, held)
}

async fn ends_well(upstream: &Upstream, gateway: &TestGateway, held: Flood) {
    upstream.open();
    assert_eq!(held.rest().await[0].status, 200);
    assert_eq!(upstream.came().len(), 1, "nothing of what was refused was sent");
    gateway.balances().await;
}

/// Sends this and reads until the gateway closes, which it has to do by itself.
async fn answer_to(gateway: &TestGateway, head: &str) -> String {
    let mut tcp = TcpStream::connect(gateway.address).await.unwrap();
    tcp.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    tcp.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn the_answer_comes_before_a_body_that_never_does() {
    let (upstream, gateway, held) = busy_gateway().await;
    for framing in [
        "content-length: 1000000\r\n",
        "transfer-encoding: chunked\r\n",
        "content-length: 1000000\r\nexpect: 100-continue\r\n",
        "transfer-encoding: chunked\r\nexpect: 100-continue\r\n",
        "content-length: 10\r\nexpect: 100-continue\r\n",
    ] {
        let head = format!("POST / HTTP/1.1\r\nhost: x\r\n{framing}\r\n");
        let answer = answer_to(&gateway, &head).await;
        assert!(answer.starts_with("HTTP/1.1 503"), "{framing}: {answer}");
        assert!(answer.contains("\r\nconnection: close\r\n"), "{framing}: {answer}");
        assert!(answer.contains("All workers are busy"), "{framing}: {answer}");
    }
    ends_well(&upstream, &gateway, held).await;
}

#[tokio::test]
async fn a_client_that_sends_a_megabyte_all_the_same_reads_its_answer() {
    let (upstream, gateway, held) = busy_gateway().await;
    for chunked in [false, true] {
        let mut tcp = TcpStream::connect(gateway.address).await.unwrap();
        let framing =
            if chunked { "transfer-encoding: chunked" } else { "content-length: 1000000" };
        let head = format!("POST / HTTP/1.1\r\nhost: x\r\n{framing}\r\n\r\n");
        tcp.write_all(head.as_bytes()).await.unwrap();
        let mut body = vec![b'x'; MEGABYTE];
        if chunked {
            body = [b"f4240\r\n", body.as_slice(), b"\r\n0\r\n\r\n"].concat();
        }
        // It may be closed on the way, in order.
        let (mut reads, mut writes) = tcp.split();
        let mut answer = Vec::new();
        let (_, read) = tokio::join!(writes.write_all(&body), reads.read_to_end(&mut answer));
        read.expect("closed in order, not reset over the answer");
        assert!(answer.starts_with(b"HTTP/1.1 503"));
    }
    ends_well(&upstream, &gateway, held).await;
}

#[tokio::test]
async fn over_http2_the_answer_comes_before_the_body_and_the_connection_goes_on() {
    let (upstream, gateway, held) = busy_gateway().await;
    let io = hyper_util::rt::TokioIo::new(TcpStream::connect(gateway.address).await.unwrap());
    let executor = hyper_util::rt::TokioExecutor::new();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(executor, io).await.unwrap();
    tokio::spawn(connection);
    let client = Client::h2(gateway.address);
    let mut bodies = Vec::new();
    for length in [None, Some(MEGABYTE)] {
        for _ in 0..5 {
            let (body_sender, body) = Channel::<Bytes, Infallible>::new(1);
            bodies.push(body_sender);
            let mut request = client.request("POST", "/");
            if let Some(length) = length {
                request = request.header("content-length", length);
            }
            let response = sender.send_request(request.body(body).unwrap()).await.unwrap();
            assert_eq!(response.status(), 503);
            let answer = response.into_body().collect().await.unwrap().to_bytes();
            assert!(String::from_utf8_lossy(&answer).contains("All workers are busy"));
        }
    }
    drop(bodies);
    ends_well(&upstream, &gateway, held).await;
    let (_, body) = Channel::<Bytes, Infallible>::new(1);
    let request = client.request("POST", "/").body(body).unwrap();
    assert!(sender.send_request(request).await.is_ok(), "the connection is of use still");
}

#[tokio::test]
async fn a_short_body_does_not_cost_the_connection() {
    let (upstream, gateway, held) = busy_gateway().await;
    let client = Client::new(gateway.address);
    let io = hyper_util::rt::TokioIo::new(TcpStream::connect(gateway.address).await.unwrap());
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
    tokio::spawn(connection);
    for body in ["", "short", &"x".repeat(8000)] {
        sender.ready().await.expect("the connection stays");
        let request = post(client, "/", body.to_owned());
        let answer = Answer::read(sender.send_request(request).await.unwrap()).await;
        assert_eq!(answer.status, 503);
        assert!(!answer.headers.contains_key("connection"), "{:?}", answer.headers);
    }
    upstream.open();
    held.rest().await;
    gateway.balances().await;
    sender.ready().await.unwrap();
    let served = sender.send_request(post(client, "/", "served")).await.unwrap();
    assert_eq!(Answer::read(served).await.status, 200);
}

#[tokio::test]
async fn where_all_models_are_busy_no_body_is_looked_into_for_its_model() {
    let (a, b) = (Upstream::closed().await, Upstream::closed().await);
    let text = "[routing]\nactive_requests_threshold = 0\n".to_owned();
    let upstreams =
        [crate::traffic::upstream_toml(&a, &["a"]), crate::traffic::upstream_toml(&b, &["b"])];
    let gateway = without_queue(&(text + &upstreams.concat()), &[]);
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
                content-length: 1000000\r\n\r\n";
    let answer = answer_to(&gateway, head).await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
}
