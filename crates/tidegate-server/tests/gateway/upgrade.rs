use crate::support::{Client, RawUpstream, TestGateway, eventually, raw, undisturbed};
use futures_util::{SinkExt, StreamExt};
use http_body_util::Full;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{accept_async, connect_async};

async fn echoing_websocket() -> RawUpstream {
    RawUpstream::start(|tcp| async move {
        let Ok(mut socket) = accept_async(tcp).await else { return };
        while let Some(Ok(message)) = socket.next().await {
            if message.is_close() {
                break;
            }
            if socket.send(message).await.is_err() {
                break;
            }
        }
    })
    .await
}

/// How long a tunnel may be silent in these tests.
const IDLE: Duration = Duration::from_millis(500);

#[tokio::test]
async fn a_websocket_passes_through_and_holds_its_permit_while_it_is_open() {
    let upstream = echoing_websocket().await;
    let gateway =
        TestGateway::start("[proxy]\nstream_idle_timeout_ms = 500\n", &[upstream.address]);
    let mut socket = undisturbed("a hundred messages without a pause", async || {
        let mut last = Instant::now();
        let (mut socket, response) =
            connect_async(format!("ws://{}/chat", gateway.address)).await.unwrap();
        assert_eq!(response.status(), 101);
        for number in 0..100 {
            let since = std::mem::replace(&mut last, Instant::now());
            let text = format!("message {number}");
            let sent = socket.send(Message::text(text.clone())).await;
            match socket.next().await {
                Some(Ok(message)) => assert_eq!(message.into_text().unwrap(), text),
                ended => {
                    assert!(since.elapsed() >= IDLE, "{ended:?} after {:?}", since.elapsed());
                    return None;
                }
            }
            sent.unwrap();
        }
        let held = gateway.in_flight();
        assert!(held == 1 || last.elapsed() >= IDLE, "{held} in flight");
        (held == 1).then_some(socket)
    })
    .await;
    socket.close(None).await.unwrap();
    while socket.next().await.is_some() {}
    // The client keeps its half of the connection open, which must not hold the permit.
    gateway.balances().await;
    drop(socket);
}

#[tokio::test]
async fn a_websocket_whose_client_vanishes_frees_its_permit() {
    let upstream = echoing_websocket().await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let (socket, _) = connect_async(format!("ws://{}/", gateway.address)).await.unwrap();
    eventually("the tunnel is open", || gateway.in_flight() == 1).await;
    drop(socket);
    gateway.balances().await;
}

#[tokio::test]
async fn an_upgrade_that_the_upstream_declines_is_an_ordinary_answer() {
    let upstream =
        RawUpstream::saying(&["HTTP/1.1 426 Upgrade Required\r\ncontent-length: 2\r\n\r\nno"])
            .await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let client = Client::new(gateway.address);
    let request = client
        .request("GET", "/")
        .header("connection", "upgrade")
        .header("upgrade", "websocket")
        .body(Full::default())
        .unwrap();
    let answer = client.send(request).await;
    assert_eq!((answer.status.as_u16(), answer.text()), (426, "no"));
    gateway.balances().await;
}

#[tokio::test]
async fn a_switch_that_nobody_asked_for_is_a_bad_gateway() {
    let upstream = RawUpstream::saying(&[
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: evil\r\n\r\nraw bytes",
    ])
    .await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let answer = Client::new(gateway.address).get("/").await;
    assert_eq!(answer.status, 502);
    gateway.balances().await;
}

#[tokio::test]
async fn http2_is_not_entered_by_upgrade() {
    let upstream = RawUpstream::start(|mut tcp| async move {
        let mut head = vec![0; 4096];
        let read = tcp.read(&mut head).await.unwrap_or(0);
        let head = String::from_utf8_lossy(&head[..read]).to_lowercase();
        assert!(!head.contains("upgrade") && !head.contains("http2-settings"), "{head}");
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
        tcp.write_all(answer).await.unwrap();
    })
    .await;
    let gateway = TestGateway::start("[proxy]\nhealth_interval_ms = 600000\n", &[upstream.address]);
    let answer = raw(
        gateway.address,
        b"GET / HTTP/1.1\r\nhost: x\r\nconnection: Upgrade, HTTP2-Settings, close\r\nupgrade: h2c\r\n\
          http2-settings: AAMAAABkAAQAAP__\r\n\r\n",
    )
    .await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn what_a_client_sends_after_the_upstream_s_half_has_ended_still_arrives() {
    let (told, mut heard) = tokio::sync::mpsc::channel(1);
    let upstream = RawUpstream::start(move |mut tcp| {
        let told = told.clone();
        async move {
            if !RawUpstream::read_head(&mut tcp).await {
                return;
            }
            let head =
                b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: raw\r\n\r\n";
            tcp.write_all(head).await.unwrap();
            tcp.shutdown().await.unwrap();
            let mut rest = String::new();
            tcp.read_to_string(&mut rest).await.unwrap();
            told.send(rest).await.unwrap();
        }
    })
    .await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let mut tcp = tokio::net::TcpStream::connect(gateway.address).await.unwrap();
    let request = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: raw\r\n\r\n";
    tcp.write_all(request).await.unwrap();
    let mut answer = String::new();
    tcp.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 101"), "{answer}");
    tcp.write_all(b"after the end").await.unwrap();
    tcp.shutdown().await.unwrap();
    assert_eq!(heard.recv().await.unwrap(), "after the end");
    gateway.balances().await;
}

#[tokio::test]
async fn open_websockets_are_counted_drained_and_then_cut() {
    let upstream = echoing_websocket().await;
    let gateway = TestGateway::start("[listen]\nshutdown_grace_ms = 300\n", &[upstream.address]);
    let (mut socket, _) = connect_async(format!("ws://{}/", gateway.address)).await.unwrap();
    eventually("the tunnel is open", || gateway.in_flight() == 1).await;
    assert_eq!(gateway.inner().metrics().connections, 1);
    assert_eq!(gateway.shutdown().await.cut, 1);
    while let Some(Ok(_)) = socket.next().await {}
}
