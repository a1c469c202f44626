//! Client certificates: without a valid chain a peer is refused in the handshake, and names in one are those of a
//! client or an operator.

use crate::authority::{Authority, Issued};
use crate::client::{Answer, Client};
use crate::node::{IDENTITIES, OPERATOR, TestNode, eventually};
use rcgen::{ExtendedKeyUsagePurpose, SanType, date_time_ymd};
use tidegate_server::config::TokenDigest;
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
    // A certificate that no operator has in the configuration names none.
    assert_eq!(known.get(node.admin, "/v1/stats").await.status, 401);
    let stats = known.ask(node.admin, ("GET", "/v1/stats"), Some(OPERATOR), "").await;
    assert_eq!(stats.status, 200);
}

/// Two clients and an operator that are known by their certificates, and a client that has a token as well.
const CERTIFIED: &str = "[claims]\nanonymous = \"low\"\n\
    [[client]]\nname = \"a\"\ncertificate = \"DNS:a.example.com\"\nmax_priority = \"normal\"\n\
    [[client]]\nname = \"b\"\ncertificate = \"URI:spiffe://prod/b\"\n\
    token = \"tg_client-b-0123456789\"\n\
    [[operator]]\nname = \"ops\"\ncertificate = \"DNS:ops.example.com\"\n";
const B_TOKEN: &str = "tg_client-b-0123456789";

/// A certificate with these subject alternative names.
fn named(clients: &Authority, file: &str, names: &[SanType]) -> Issued {
    clients.issue_with(file, |params| params.subject_alt_names = names.to_vec())
}

fn dns(name: &str) -> SanType {
    SanType::DnsName(name.try_into().unwrap())
}

fn uri(uri: &str) -> SanType {
    SanType::URI(uri.try_into().unwrap())
}

async fn submit(client: &Client, node: &TestNode, id: &str, token: Option<&str>) -> Answer {
    let task = format!(r#"{{"id":"{id}","runtime":"sh","code":"true","priority":"high"}}"#);
    client.ask(node.data, ("POST", "/v1/tasks"), token, &task).await
}

#[tokio::test]
async fn a_certificate_names_its_client_on_the_data_port() {
    let (servers, clients) = (Authority::new(), Authority::new());
    let ca = format!("client_ca = {:?}\n", clients.bundle());
    let node = TestNode::start(&(servers.issue("server").toml() + &ca + CERTIFIED));
    let showing = |issued: &Issued| Client::showing(&servers, issued);
    let a = showing(&named(&clients, "a", &[dns("other"), dns("A.example.com")]));
    let b = showing(&named(&clients, "b", &[uri("spiffe://prod/b")]));
    let nobody = showing(&named(&clients, "a.example.com", &[dns("x.a.example.com")]));
    let submitted = submit(&a, &node, "of-a", None).await;
    assert_eq!((submitted.status, &submitted.json()["priority"]), (201, &"normal".into()));
    let task = ("GET", "/v1/tasks/of-a");
    assert_eq!(a.ask(node.data, task, None, "").await.status, 200);
    for other in [&b, &nobody] {
        assert_eq!(other.ask(node.data, task, None, "").await.status, 404);
    }
    // The token of a client is that client's, with and without its certificate.
    assert_eq!(submit(&nobody, &node, "of-b", Some(B_TOKEN)).await.status, 201);
    let task = ("GET", "/v1/tasks/of-b");
    for (client, token) in [(&b, None), (&b, Some(B_TOKEN)), (&nobody, Some(B_TOKEN))] {
        assert_eq!(client.ask(node.data, task, token, "").await.status, 200);
    }
    // A stolen token is of no use to another client, and a certificate with the names of two is nobody's.
    let both = showing(&named(&clients, "both", &[dns("a.example.com"), uri("spiffe://prod/b")]));
    for (client, token) in [(&a, Some(B_TOKEN)), (&both, None)] {
        let refused = client.ask(node.data, task, token, "").await;
        assert_eq!(refused.status, 401);
        assert!(refused.body.contains("identity_conflict"), "{}", refused.body);
        assert_eq!(client.get(node.data, "/health/live").await.status, 200);
    }
}

#[tokio::test]
async fn a_certificate_names_an_operator_on_the_admin_port_and_a_client_there_is_none() {
    let (servers, clients) = (Authority::new(), Authority::new());
    let ca = format!("client_ca = {:?}\n", clients.bundle());
    let digest = named(&clients, "digest", &[dns("digest.example.com")]);
    let digits = TokenDigest::of(&digest.der()).to_hex();
    let toml = format!(
        "{}{ca}{CERTIFIED}[[operator]]\nname = \"digest\"\ncertificate = \"SHA256:{digits}\"\n",
        servers.issue("server").toml()
    );
    let node = TestNode::start(&toml);
    let showing = |issued: &Issued| Client::showing(&servers, issued);
    let ops = showing(&named(&clients, "ops", &[dns("ops.example.com")]));
    let a = showing(&named(&clients, "a", &[dns("a.example.com")]));
    let nobody = showing(&named(&clients, "nobody", &[dns("nobody")]));
    let renewed = showing(&named(&clients, "renewed", &[dns("digest.example.com")]));
    for (client, status) in
        [(&ops, 200), (&showing(&digest), 200), (&a, 403), (&nobody, 401), (&renewed, 401)]
    {
        for path in ["/v1/stats", "/busy_threshold", "/v1/tasks", "/v1/usage"] {
            assert_eq!(client.get(node.admin, path).await.status, status, "{path}");
        }
        assert_eq!(client.get(node.data, "/v1/stats").await.status, status);
    }
}
