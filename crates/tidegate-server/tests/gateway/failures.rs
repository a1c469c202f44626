use crate::support::{
    Answer, Client, RawUpstream, Reserved, TestGateway, Upstream, eventually, undisturbed,
};
use bytes::Bytes;
use http_body_util::{BodyExt, Channel, Full};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep;

fn assert_typed(answer: &Answer, status: u16, kind: &str, reason: &str) {
    let body = answer.json();
    assert_eq!(answer.status.as_u16(), status, "{body}");
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(
        (body["type"].as_str(), body["reason"].as_str()),
        (Some(kind), Some(reason)),
        "{body}"
    );
    assert_eq!(body["code"], status);
    assert!(!body["message"].as_str().unwrap().is_empty());
}

#[tokio::test]
async fn a_dead_upstream_is_a_typed_502() {
    let dead = Reserved::new();
    let gateway = TestGateway::start("", &[dead.address]);
    let answer = Client::new(gateway.address).get("/").await;
    assert_typed(&answer, 502, "bad_gateway", "connect_failed");
    gateway.balances().await;
}

#[tokio::test]
async fn what_was_not_sent_goes_to_another_upstream() {
    let alive = Upstream::start().await;
    let config = "[proxy]\nhealth_interval_ms = 600000\n";
    let dead = [Reserved::new(), Reserved::new()];
    let addresses = [dead[0].address, alive.address, dead[1].address];
    let gateway = TestGateway::start(config, &addresses);
    for _ in 0..20 {
        let client = Client::new(gateway.address);
        let request = client.request("POST", "/").body(Full::from("not idempotent")).unwrap();
        assert_eq!(client.send(request).await.status, 200);
    }
    assert_eq!(alive.seen().len(), 20, "each exactly once");
    gateway.balances().await;
}

#[tokio::test]
async fn an_upstream_that_comes_back_is_used_again() {
    let dead = Reserved::new();
    let gateway = TestGateway::start("[proxy]\nhealth_interval_ms = 50\n", &[dead.address]);
    assert_eq!(Client::new(gateway.address).get("/").await.status, 502);
    eventually("it is seen to be down", || !gateway.inner().fleet().any_up()).await;
    assert_eq!(Client::new(gateway.admin).get("/health/ready").await.status, 503);
    let listener = dead.listen();
    tokio::spawn(async move {
        loop {
            let (mut tcp, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                if RawUpstream::read_head(&mut tcp).await {
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                    let _ = tcp.write_all(answer).await;
                }
            });
        }
    });
    eventually("it is seen to be up", || gateway.inner().fleet().any_up()).await;
    assert_eq!(Client::new(gateway.address).get("/").await.status, 200);
    assert_eq!(Client::new(gateway.admin).get("/health/ready").await.status, 200);
}

#[tokio::test]
async fn a_reset_before_the_answer_is_a_typed_502_and_is_not_repeated() {
    let asked = Arc::new(AtomicUsize::new(0));
    let upstream = RawUpstream::start({
        let asked = Arc::clone(&asked);
        move |mut tcp| {
            let asked = Arc::clone(&asked);
            async move {
                if RawUpstream::read_head(&mut tcp).await {
                    asked.fetch_add(1, Ordering::Relaxed);
                    reset(tcp);
                }
            }
        }
    })
    .await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let client = Client::new(gateway.address);
    let answer = client.send(client.request("POST", "/").body(Full::from("x")).unwrap()).await;
    assert_typed(&answer, 502, "bad_gateway", "upstream_reset");
    assert_eq!(asked.load(Ordering::Relaxed), 1, "what may have begun is not repeated");
    gateway.balances().await;
}

/// Closes with a reset in place of an orderly end.
fn reset(tcp: tokio::net::TcpStream) {
    let socket = socket2::SockRef::from(&tcp);
    socket.set_linger(Some(Duration::ZERO)).unwrap();
}

#[tokio::test]
async fn an_idle_connection_that_the_upstream_closed_is_not_the_client_s_problem() {
    // Answers one request a connection, then closes it as soon as the next one has been sent.
    let asked = Arc::new(AtomicUsize::new(0));
    let upstream = RawUpstream::start({
        let asked = Arc::clone(&asked);
        move |mut tcp| {
            let asked = Arc::clone(&asked);
            async move {
                if RawUpstream::read_head(&mut tcp).await {
                    asked.fetch_add(1, Ordering::Relaxed);
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
                    tcp.write_all(answer).await.unwrap();
                    RawUpstream::read_head(&mut tcp).await;
                }
            }
        }
    })
    .await;
    let gateway = TestGateway::start("[listen]\nthreads = 1\n", &[upstream.address]);
    for _ in 0..10 {
        assert_eq!(Client::new(gateway.address).get("/").await.status, 200);
    }
    assert_eq!(asked.load(Ordering::Relaxed), 10);
    gateway.balances().await;
}

#[tokio::test]
async fn an_answer_that_does_not_come_is_a_typed_504() {
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start("[proxy]\nresponse_timeout_ms = 100\n", &[upstream.address]);
    let answer = Client::new(gateway.address).get("/").await;
    assert_typed(&answer, 504, "gateway_timeout", "response_timeout");
    let stats = gateway.stats().await;
    assert_eq!(stats["admission"]["finished"][2]["dropped"], 1, "a timeout is a sign of overload");
    gateway.balances().await;
}

#[tokio::test]
async fn a_slow_upload_is_not_a_late_answer() {
    const LIMIT: Duration = Duration::from_millis(1_500);
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("[proxy]\nresponse_timeout_ms = 1500\n", &[upstream.address]);
    let client = Client::new(gateway.address);
    // If the upload's own time counted, every try would fail, not only one in which a thread stood still.
    let mut tries = 0;
    undisturbed("an upload in pieces", async || {
        tries += 1;
        let (mut sender, body) = Channel::<Bytes, Infallible>::new(1);
        let request = client.request("POST", "/").body(body).unwrap();
        let start = Instant::now();
        tokio::spawn(async move {
            for _ in 0..8 {
                if sender.send_data(Bytes::from("piece")).await.is_err() {
                    return;
                }
                sleep(Duration::from_millis(250)).await;
            }
        });
        let status = Answer::read(client.begin(request).await.unwrap()).await.status;
        assert!(status == 200 || tries < 5, "{status}");
        assert!(status != 200 || start.elapsed() > LIMIT, "it took longer than an answer may");
        (status == 200).then_some(())
    })
    .await;
    gateway.balances().await;
}

#[tokio::test]
async fn a_client_that_stops_sending_is_told_so() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("[proxy]\nresponse_timeout_ms = 200\n", &[upstream.address]);
    let client = Client::new(gateway.address);
    let (mut sender, body) = Channel::<Bytes, Infallible>::new(1);
    let request = client.request("POST", "/").body(body).unwrap();
    sender.send_data(Bytes::from("the first half")).await.unwrap();
    let answer = Answer::read(client.begin(request).await.unwrap()).await;
    assert_typed(&answer, 408, "request_timeout", "upload_stalled");
    drop(sender);
    gateway.balances().await;
}

#[tokio::test]
async fn an_answer_that_breaks_off_breaks_off_for_the_client_too() {
    let upstream =
        RawUpstream::saying(&["HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this"]).await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let client = Client::new(gateway.address);
    let request = client.request("GET", "/").body(Full::<Bytes>::default()).unwrap();
    let response = client.begin(request).await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(response.into_body().collect().await.is_err(), "a short answer must not look whole");
    gateway.balances().await;
}

#[tokio::test]
async fn an_answer_that_stands_still_is_ended() {
    let upstream = RawUpstream::start(|mut tcp| async move {
        RawUpstream::read_head(&mut tcp).await;
        let _ = tcp.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this").await;
        let _ = tcp.read_u8().await;
    })
    .await;
    let gateway =
        TestGateway::start("[proxy]\nstream_idle_timeout_ms = 100\n", &[upstream.address]);
    let client = Client::new(gateway.address);
    let request = client.request("GET", "/").body(Full::<Bytes>::default()).unwrap();
    let response = client.begin(request).await.unwrap();
    assert!(response.into_body().collect().await.is_err());
    gateway.balances().await;
}

#[tokio::test]
async fn garbage_from_an_upstream_is_a_typed_502() {
    let upstream = RawUpstream::saying(&["this is not HTTP at all\r\n\r\n"]).await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let answer = Client::new(gateway.address).get("/").await;
    assert_typed(&answer, 502, "bad_gateway", "upstream_reset");
    gateway.balances().await;
}

#[tokio::test]
async fn an_upstream_that_resets_every_stream_is_asked_twice_and_no_more() {
    let asked = Arc::new(AtomicUsize::new(0));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn({
        let asked = Arc::clone(&asked);
        async move {
            loop {
                let (tcp, _) = listener.accept().await.unwrap();
                let asked = Arc::clone(&asked);
                tokio::spawn(async move {
                    let Ok(mut connection) = h2::server::handshake(tcp).await else { return };
                    while let Some(Ok((request, mut respond))) = connection.accept().await {
                        if request.uri().path() == "/fine" {
                            respond.send_response(http::Response::new(()), true).unwrap();
                        } else {
                            asked.fetch_add(1, Ordering::Relaxed);
                            respond.send_reset(h2::Reason::INTERNAL_ERROR);
                        }
                    }
                });
            }
        }
    });
    let config = format!("[listen]\nthreads = 1\n[[upstream]]\nurl = \"h2c://{address}\"\n");
    let gateway = TestGateway::start(&config, &[]);
    assert_eq!(Client::new(gateway.address).get("/fine").await.status, 200);
    let answer = Client::new(gateway.address).get("/reset").await;
    assert_typed(&answer, 502, "bad_gateway", "upstream_reset");
    assert_eq!(asked.load(Ordering::Relaxed), 2);
    gateway.balances().await;
}

#[tokio::test]
async fn a_malformed_chunk_is_the_client_s_mistake() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let request =
        b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nnot a length\r\n";
    let answer = crate::support::raw(gateway.address, request).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{answer}");
    gateway.balances().await;
    assert_eq!(gateway.stats().await["upstreams"][0]["failed"], 0, "the upstream is not to blame");
}

#[tokio::test]
async fn an_unsent_upload_announces_the_end_of_the_connection() {
    let dead = Reserved::new();
    let gateway = TestGateway::start("", &[dead.address]);
    let request = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n";
    let answer = crate::support::raw(gateway.address, request).await;
    assert!(answer.starts_with("HTTP/1.1 502") && answer.contains("connection: close"), "{answer}");
    gateway.balances().await;
}

/// What comes of an upstream's answer, over both protocols in front.
async fn passed_on(answer: &'static [&'static str]) -> [Result<Answer, String>; 2] {
    let upstream = RawUpstream::saying(answer).await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let mut outcomes = Vec::new();
    for client in [Client::new(gateway.address), Client::h2(gateway.address)] {
        let request = client.request("GET", "/").body(Full::<Bytes>::default()).unwrap();
        outcomes.push(match client.begin(request).await {
            Ok(response) => Ok(Answer::read(response).await),
            Err(error) => Err(error.to_string()),
        });
    }
    gateway.balances().await;
    outcomes.try_into().unwrap()
}

#[tokio::test]
async fn no_content_has_no_length() {
    for answer in passed_on(&["HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\n"]).await {
        let answer = answer.unwrap();
        assert_eq!(answer.status, 204);
        assert!(!answer.headers.contains_key("content-length"), "{answer:?}");
    }
}

#[tokio::test]
async fn a_length_beside_a_transfer_coding_is_not_believed() {
    const ANSWER: &[&str] =
        &["HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n\
                  2\r\nok\r\n0\r\n\r\n"];
    for answer in passed_on(ANSWER).await {
        assert_eq!(answer.unwrap().text(), "ok");
    }
}

#[tokio::test]
async fn answers_that_cannot_be_passed_on_are_bad_gateways() {
    const GZIP: &[&str] =
        &["HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"];
    for answer in passed_on(GZIP).await {
        assert_typed(&answer.unwrap(), 502, "bad_gateway", "bad_answer");
    }
    let upstream =
        RawUpstream::saying(&["HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\n"])
            .await;
    let gateway = TestGateway::start("", &[upstream.address]);
    for client in [Client::new(gateway.address), Client::h2(gateway.address)] {
        let request = client.request("HEAD", "/").body(Full::default()).unwrap();
        assert_eq!(client.send(request).await.status, 502);
    }
}
