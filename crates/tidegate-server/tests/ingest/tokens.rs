//! Senders with tokens, without one, and with one of somebody else.

use crate::http::eventually;
use crate::support::{Peer, TestIngest, batch, batch_of, hello, hello_with, lines_peer, record};
use tidegate::MessageClass;
use tidegate::client::{ClientConfig, ClientError, FlushError, IngestClient};
use tidegate::frame::RejectReason;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

pub const A: &str = "tg_client-a-0123456789";
pub const B: &str = "tg_client-b-0123456789";
const OPERATOR: &str = "tg_operator-0123456789";

/// Two clients, one of which has two tenants, and an operator.
pub const CLIENTS: &str = "[[client]]\nname = \"a\"\ntoken = \"tg_client-a-0123456789\"\n\
    [[client]]\nname = \"b\"\ntoken = \"tg_client-b-0123456789\"\ntenants = [\"x\", \"y\"]\n\
    [[operator]]\nname = \"ops\"\ntoken = \"tg_operator-0123456789\"\n";

fn guarded() -> TestIngest {
    TestIngest::start_as(CLIENTS, |config| config.tokens_required = true)
}

/// Sends lines, and waits until the other side closes.
async fn send_lines(ingest: &TestIngest, text: &str) {
    let mut lines = lines_peer(ingest.lines).await;
    lines.write_all(text.as_bytes()).await.unwrap();
    lines.shutdown().await.unwrap();
    // A reset is an end too: unread lines of a connection that was refused.
    let _ = lines.read_to_end(&mut Vec::new()).await;
}

#[tokio::test]
async fn a_sender_without_a_known_token_is_refused_and_closed() {
    let ingest = guarded();
    for greeting in [hello("s"), hello_with("s", "tg_nobody-has-this-one")] {
        let mut peer = Peer::connect(ingest.frames).await;
        peer.send(&greeting).await;
        let reject = peer.reject().await;
        assert_eq!((reject.reason, reject.seq), (RejectReason::Unauthorized, 0));
        assert_eq!(reject.retry_after_ms, None);
        peer.closed().await;
    }
    for first in ["", "auth short\n", "auth tg_nobody-has-this-one\n"] {
        send_lines(&ingest, &format!("{first}m,tenant=a value=1 1\n")).await;
    }
    eventually("all are counted", || ingest.rejected("unauthorized") == 5).await;
    assert_eq!(ingest.usage().await, []);
}

#[tokio::test]
async fn a_client_sends_records_of_its_own_tenants_alone() {
    let ingest = guarded();
    let mut peer = Peer::with_token(ingest.frames, "s", B).await;
    let mixed = [record("x", 1), record("a", 1)];
    peer.send(&batch_of(MessageClass::Data, (1, 0), &mixed)).await;
    let reject = peer.reject().await;
    assert_eq!((reject.reason, reject.seq), (RejectReason::TenantRefused, 1));
    assert!(reject.message.contains("\"a\""), "it names the tenant: {}", reject.message);
    peer.send(&batch("y", (2, 1), 3)).await;
    peer.acked(2).await;
    let text = format!("auth {A}\nm,tenant=x value=1 1\nm,tenant=a value=1 1\nm value=1 1\n");
    send_lines(&ingest, &text).await;
    eventually("they are in", || ingest.stats().counts.records_stored == 4).await;
    let stored = ["a", "x", "y", "unassigned"].map(|tenant| ingest.stored(tenant));
    let [a, x, y, unassigned] = stored;
    assert_eq!((a.await, x.await, y.await, unassigned.await), (1, 0, 3, 0));
    assert_eq!(ingest.rejected("tenant_refused"), 3);
    let mut operator = Peer::with_token(ingest.frames, "o", OPERATOR).await;
    operator.send(&batch_of(MessageClass::Data, (1, 0), &mixed)).await;
    operator.acked(1).await;
}

#[tokio::test]
async fn loopback_stays_open_to_senders_without_a_token() {
    let with_clients = TestIngest::start_as(CLIENTS, |_| {});
    let without = TestIngest::start();
    for ingest in [&with_clients, &without] {
        let mut peer = Peer::named(ingest.frames, "s").await;
        peer.send(&batch("anyone", (1, 0), 1)).await;
        peer.acked(1).await;
        send_lines(ingest, "m,tenant=anyone value=1 1\nauth,tenant=anyone value=1 1\n").await;
        eventually("they are in", || ingest.stats().counts.records_stored == 3).await;
    }
    // Without clients a token means nothing; with them it must be one of theirs.
    let mut peer = Peer::with_token(without.frames, "t", "tg_nobody-has-this-one").await;
    peer.send(&batch("anyone", (1, 0), 1)).await;
    peer.acked(1).await;
    let mut peer = Peer::connect(with_clients.frames).await;
    peer.send(&hello_with("t", "tg_nobody-has-this-one")).await;
    assert_eq!(peer.reject().await.reason, RejectReason::Unauthorized);
}

#[tokio::test]
async fn the_library_shows_its_token_and_ends_where_it_is_unknown() {
    let ingest = guarded();
    let client = |name: &str, token: Option<&str>| {
        let mut config = ClientConfig::new(name.parse().unwrap());
        config.token = token.map(|token| token.parse().unwrap());
        IngestClient::connect(ingest.frames.to_string(), config).unwrap().0
    };
    let known = client("known", Some(A));
    known.send(&record("a", 7)).await.unwrap();
    known.flush().await.unwrap();
    for token in [None, Some("tg_nobody-has-this-one")] {
        let unknown = client("unknown", token);
        unknown.send(&record("a", 7)).await.unwrap();
        let error = unknown.flush().await.unwrap_err();
        let is_it = matches!(
            error,
            FlushError::Ended { records: 1, error: ClientError::Unauthorized { .. } }
        );
        assert!(is_it, "{error:?}");
    }
    assert_eq!(ingest.stored("a").await, 1);
}
