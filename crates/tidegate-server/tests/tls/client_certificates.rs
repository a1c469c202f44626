//! Client certificates: without a valid chain a peer is refused in the handshake.

use crate::authority::Authority;
use crate::client::Client;
use crate::node::{IDENTITIES, OPERATOR, TestNode, eventually};
use rcgen::{ExtendedKeyUsagePurpose, date_time_ymd};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// True if the server ends the connection without a word of the protocol above TLS.
async fn is_refused(client: &Client, port: std::net::SocketAddr) -> bool {
    // With TLS 1.3 the client is done before the server has checked it: the refusal may come with the first read.
    let Ok(mut stream) = client.connect(port).await else { return true };
    let _ = stream.write_all(b"GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let _ = stream.flush().await;
    let mut said = Vec::new();
    let ended = stream.read_to_end(&mut said).await;
    said.is_empty() && ended.is_err()
}

#[tokio::test]
async fn a_port_with_client_authorities_is_closed_to_all_others() {
    let (servers, clients, strangers) = (Authority::new(), Authority::new(), Authority::new());
    let ca = format!("client_ca = {:?}\n", clients.bundle());
    let node = TestNode::start(&(servers.issue("server").toml() + &ca + IDENTITIES));
    let without = Client::trusting(&servers);
    let strange = Client::showing(&servers, &strangers.issue("stranger"));
    let expired = clients.issue_with("expired", |params| {
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
    });
    let expired = Client::showing(&servers, &expired);
    let server_only = clients.issue_with("server-only", |params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    });
    let server_only = Client::showing(&servers, &server_only);
    for port in [node.data, node.admin, node.frames, node.lines] {
        for client in [&without, &strange, &expired, &server_only] {
            assert!(is_refused(client, port).await);
        }
    }
    let known = Client::showing(&servers, &clients.issue("known"));
    for port in [node.data, node.admin] {
        assert_eq!(known.get(port, "/health/live").await.status, 200);
    }
    let mut lines = known.connect(node.lines).await.unwrap();
    lines.write_all(b"calls,tenant=a quantity=1 1000000000\n").await.unwrap();
    lines.flush().await.unwrap();
    eventually("the line is stored", async || node.records_stored() == 1).await;
    // A certificate is no operator's token.
    assert_eq!(known.get(node.admin, "/v1/stats").await.status, 401);
    let stats = known.ask(node.admin, ("GET", "/v1/stats"), Some(OPERATOR), "").await;
    assert_eq!(stats.status, 200);
}
