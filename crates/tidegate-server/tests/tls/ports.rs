//! Each port over TLS, and what plain, stalled and mistrusting peers get.

use crate::authority::Authority;
use crate::client::Client;
use crate::node::{IDENTITIES, OPERATOR, TestNode, eventually};
use std::io;
use std::time::{Duration, Instant};
use tidegate::client::{ClientConfig, Connector, IngestClient};
use tidegate::usage::UsageRecord;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

const LINES: &str = "calls,tenant=a quantity=1 1000000000\ncalls,tenant=a quantity=1 2000000000\n";

/// Connections of the ingest client over TLS.
struct OverTls(Client, std::net::SocketAddr);

impl Connector for OverTls {
    type Io = TlsStream<TcpStream>;

    async fn connect(&mut self) -> io::Result<Self::Io> {
        self.0.connect(self.1).await
    }

    fn server(&self) -> String {
        self.1.to_string()
    }
}

#[tokio::test]
async fn every_port_speaks_tls_with_one_certificate_for_all() {
    let authority = Authority::new();
    let node = TestNode::start(&(authority.issue("server").toml() + IDENTITIES));
    let client = Client::trusting(&authority);
    for port in [node.data, node.admin] {
        assert_eq!(client.get(port, "/health/live").await.status, 200);
    }
    let stats = client.ask(node.admin, ("GET", "/v1/stats"), Some(OPERATOR), "").await;
    assert_eq!(stats.status, 200);

    let mut lines = client.connect(node.lines).await.unwrap();
    lines.write_all(LINES.as_bytes()).await.unwrap();
    lines.flush().await.unwrap();
    eventually("lines are stored", async || node.records_stored() == 2).await;

    let config = ClientConfig::new("sender".parse().unwrap());
    let connector = OverTls(client.clone(), node.frames);
    let (sender, _rejections) = IngestClient::connect_by(connector, config).unwrap();
    let record = UsageRecord {
        tenant: "a".into(),
        meter: "calls".into(),
        quantity: 1.into(),
        time_ns: 1_000_000_000,
        labels: "".into(),
    };
    for _ in 0..1_000 {
        sender.send(&record).await.unwrap();
    }
    sender.flush().await.unwrap();
    let summary = sender.close(Duration::from_secs(30)).await;
    assert_eq!((summary.stats.records_acked, node.records_stored()), (1_000, 1_002));
}

#[tokio::test]
async fn a_port_can_have_a_certificate_of_its_own_or_stay_plain() {
    let authority = Authority::new();
    let (shared, own) = (authority.issue("shared"), authority.issue("own"));
    let toml = format!(
        "[listen]\nadmin_tls_cert = {:?}\nadmin_tls_key = {:?}\n[ingest]\nlines_tls = \"off\"\n",
        own.cert, own.key
    );
    let node = TestNode::start(&(toml + &shared.toml()));
    let client = Client::trusting(&authority);
    assert_eq!(client.get(node.data, "/health/live").await.certificate, shared.der());
    assert_eq!(client.get(node.admin, "/health/live").await.certificate, own.der());
    let mut plain = TcpStream::connect(node.lines).await.unwrap();
    plain.write_all(LINES.as_bytes()).await.unwrap();
    eventually("plain lines are stored", async || node.records_stored() == 2).await;
}

/// A peer without TLS on a port with it: the connection ends at its first bytes, with nothing of an answer.
#[tokio::test]
async fn a_plain_peer_is_refused_at_once_and_others_are_served() {
    let authority = Authority::new();
    let node = TestNode::start(&authority.issue("server").toml());
    let client = Client::trusting(&authority);
    for port in [node.data, node.admin, node.frames, node.lines] {
        let start = Instant::now();
        let mut plain = TcpStream::connect(port).await.unwrap();
        plain.write_all(b"GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let mut said = Vec::new();
        let _ = plain.read_to_end(&mut said).await;
        assert!(!String::from_utf8_lossy(&said).contains("HTTP/"), "{said:?}");
        // Long before any deadline of a silent peer.
        assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    }
    assert_eq!(node.records_stored(), 0);
    assert_eq!(client.get(node.admin, "/health/live").await.status, 200);
    let metrics = client.get(node.admin, "/metrics").await.body;
    for port in ["data", "admin", "frames", "lines"] {
        let failed = format!("tidegate_tls_handshakes_failed_total{{port=\"{port}\"}} 1");
        assert!(metrics.contains(&failed), "{port}");
    }
}

/// Peers that begin a handshake and say no more are let go of, and delay nobody meanwhile.
#[tokio::test]
async fn a_stalled_handshake_ends_at_its_deadline() {
    let authority = Authority::new();
    let node = TestNode::start(&authority.issue("server").toml());
    let client = Client::trusting(&authority);
    let mut stalled = Vec::new();
    for port in [node.data, node.admin, node.frames, node.lines] {
        for _ in 0..8 {
            let mut peer = TcpStream::connect(port).await.unwrap();
            // The head of a record of a ClientHello, whose body does not come.
            peer.write_all(&[0x16, 0x03, 0x01, 0x01, 0x00, 0x01]).await.unwrap();
            stalled.push(peer);
        }
    }
    for port in [node.data, node.admin] {
        assert_eq!(client.get(port, "/health/live").await.status, 200);
    }
    for mut peer in stalled {
        let ended = tokio::time::timeout(Duration::from_secs(60), async {
            let _ = peer.read_to_end(&mut Vec::new()).await;
        });
        ended.await.expect("the handshake has a deadline");
    }
}

#[tokio::test]
async fn a_client_that_does_not_know_the_authority_sends_nothing() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let node = TestNode::start(&ours.issue("server").toml());
    let mistrusting = Client::trusting(&theirs);
    for port in [node.data, node.admin, node.frames, node.lines] {
        let error = mistrusting.connect(port).await.map(drop).unwrap_err();
        assert!(error.to_string().contains("certificate"), "{error}");
    }
}
