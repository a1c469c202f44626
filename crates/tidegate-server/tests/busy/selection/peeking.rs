//! A body that was looked into arrives as it was sent.

use crate::support::{Answer, Client, TestGateway, undisturbed};
use crate::traffic::{CHAT, post, upstream_toml, without_queue};
use crate::upstream::{Came, Upstream};
use bytes::Bytes;
use http_body_util::Channel;
use std::convert::Infallible;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn two_models(config: &str) -> (Upstream, Upstream, TestGateway) {
    let (a, b) = (Upstream::start().await, Upstream::start().await);
    let config = format!("{config}\n{}{}", upstream_toml(&a, &["a"]), upstream_toml(&b, &["b"]));
    let gateway = without_queue(&config, &[]);
    (a, b, gateway)
}

/// Long, with the model behind all the rest, odd spaces, and words that look like what is looked for.
fn model_last(model: &str, messages: usize) -> String {
    let message = r#"{ "role":"user", "content":"\"model\": \"b\" }] {ü€\u00fc" }"#;
    let messages = vec![message; messages].join(" ,\n");
    format!("{{\"messages\" : [{messages}], \"n\":1,\t\"model\" :\"{model}\" , \"x\":{{}} }}\n")
}

/// A body in pieces, whose length nobody says.
async fn send_in_pieces(client: Client, body: &str, piece: usize) -> Answer {
    let (mut sender, pieces) = Channel::<Bytes, Infallible>::new(1);
    let request = client.request("POST", CHAT).header("content-type", "application/json");
    let body = body.as_bytes().to_vec();
    tokio::spawn(async move {
        for piece in body.chunks(piece) {
            sender.send_data(Bytes::copy_from_slice(piece)).await.unwrap();
        }
    });
    Answer::read(client.begin(request.body(pieces).unwrap()).await.unwrap()).await
}

fn assert_came_whole(came: &Came, body: &str) {
    assert!(came.body == body, "{} of {} bytes", came.body.len(), body.len());
}

#[tokio::test]
async fn wherever_the_model_stands_the_body_arrives_byte_for_byte_with_its_length() {
    let (a, b, gateway) = two_models("").await;
    for client in [Client::new(gateway.address), Client::h2(gateway.address)] {
        for body in [
            r#"{"model":"a","messages":[]}"#.to_owned(),
            model_last("a", 1),
            model_last("a", 500),
            format!("{{\"model\":\"a\",\"prompt\":\"{}\"}}", "x".repeat(1_000_000)),
        ] {
            let before = a.came().len();
            assert_eq!(client.send(post(client, CHAT, body.clone())).await.status, 200);
            assert_eq!((a.came().len(), b.came().len()), (before + 1, 0), "{} bytes", body.len());
            assert_came_whole(&a.last(), &body);
            assert_eq!(a.last().headers["content-length"], body.len().to_string());
            assert!(!a.last().headers.contains_key("transfer-encoding"));
        }
    }
}

#[tokio::test]
async fn a_body_of_unknown_length_is_looked_into_piece_by_piece() {
    let (a, b, gateway) = two_models("").await;
    for client in [Client::new(gateway.address), Client::h2(gateway.address)] {
        for (messages, piece) in [(1, 1), (1, 7), (500, 1000)] {
            let (before, body) = (a.came().len(), model_last("a", messages));
            assert_eq!(send_in_pieces(client, &body, piece).await.status, 200);
            assert_eq!((a.came().len(), b.came().len()), (before + 1, 0), "pieces of {piece}");
            assert_came_whole(&a.last(), &body);
            assert_eq!(a.last().headers["transfer-encoding"], "chunked");
        }
    }
}

#[tokio::test]
async fn beyond_the_bound_the_model_is_unknown_and_the_body_still_whole() {
    let (a, b, gateway) = two_models("[routing]\nmodel_peek_bytes = 1024\n").await;
    let client = Client::new(gateway.address);
    let body = model_last("a", 5000);
    for _ in 0..20 {
        assert_eq!(client.send(post(client, CHAT, body.clone())).await.status, 200);
        assert_eq!(send_in_pieces(client, &body, 500).await.status, 200);
    }
    let came: Vec<_> = a.came().into_iter().chain(b.came()).collect();
    assert_eq!(came.len(), 40);
    assert!(!b.came().is_empty(), "nobody knows that it is for the other");
    came.iter().for_each(|one| assert_came_whole(one, &body));
    // Within the bound it is known.
    let (before, body) = (b.came().len(), model_last("b", 3));
    for _ in 0..10 {
        assert_eq!(client.send(post(client, CHAT, body.clone())).await.status, 200);
    }
    assert_eq!(b.came().len(), before + 10);
}

#[tokio::test]
async fn with_a_bound_of_nothing_no_body_is_looked_into() {
    let (a, b, gateway) = two_models("[routing]\nmodel_peek_bytes = 0\npick = \"random\"\n").await;
    let client = Client::new(gateway.address);
    for _ in 0..40 {
        assert_eq!(client.send(post(client, CHAT, model_last("a", 1))).await.status, 200);
    }
    assert_eq!(a.came().len() + b.came().len(), 40);
    assert!(!b.came().is_empty());
}

#[tokio::test]
async fn what_is_no_json_passes_as_it_is() {
    let (a, b, gateway) = two_models("").await;
    let client = Client::new(gateway.address);
    for body in ["", "nonsense", "[1,2]", "{", r#"{"model":7}"#, "{\"model\":\"a", "\u{0}\u{1}"] {
        let before = a.came().len() + b.came().len();
        assert_eq!(client.send(post(client, CHAT, body)).await.status, 200, "{body:?}");
        assert_eq!(a.came().len() + b.came().len(), before + 1);
    }
    let bodies: Vec<_> = a.came().into_iter().chain(b.came()).map(|one| one.body).collect();
    assert!(bodies.contains(&Bytes::from("{\"model\":\"a")), "what breaks off too");
}

#[tokio::test]
async fn a_client_that_stops_while_its_body_is_looked_into_holds_nothing() {
    let (a, b, gateway) = two_models("[listen]\nheader_timeout_ms = 200\n").await;
    let client = Client::new(gateway.address);
    let answer = undisturbed("a head comes within its time", async || {
        let (mut sender, pieces) = Channel::<Bytes, Infallible>::new(1);
        let request = client.request("POST", CHAT).body(pieces).unwrap();
        sender.send_data(Bytes::from("{\"messages\":[")).await.unwrap();
        let start = Instant::now();
        let begun = client.begin(request).await;
        assert!(start.elapsed() >= Duration::from_millis(200), "{begun:?} before its time");
        // Closed without a word: the head itself came too late.
        Some(Answer::read(begun.ok()?).await)
    })
    .await;
    let reason = answer.json()["reason"].clone();
    assert_eq!((answer.status.as_u16(), reason.as_str()), (408, Some("upload_stalled")));
    assert_eq!(a.came().len() + b.came().len(), 0);
    gateway.balances().await;
}

#[tokio::test]
async fn an_expectant_client_is_asked_for_its_body_when_its_model_has_to_be_known() {
    let config = "[[model]]\nname = \"a\"\nactive_requests_threshold = 0\n";
    let (a, b, gateway) = two_models(config).await;
    for (model, status) in [("a", "503"), ("b", "200")] {
        let body = format!("{{\"model\":\"{model}\"}}");
        let head = format!(
            "POST /x HTTP/1.1\r\nhost: x\r\nconnection: close\r\nexpect: 100-continue\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        );
        let mut tcp = TcpStream::connect(gateway.address).await.unwrap();
        tcp.write_all(head.as_bytes()).await.unwrap();
        let mut asked = [0; 25];
        tcp.read_exact(&mut asked).await.unwrap();
        assert_eq!(&asked, b"HTTP/1.1 100 Continue\r\n\r\n");
        tcp.write_all(body.as_bytes()).await.unwrap();
        let mut answer = String::new();
        tcp.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{model}: {answer}");
    }
    assert_eq!((a.came().len(), b.came().len()), (0, 1));
}
