//! Senders of usage records that are known by their client certificates.

use crate::authority::Authority;
use crate::client::Client;
use crate::node::{TestNode, eventually};
use rcgen::SanType;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tidegate::client::{ClientConfig, Connector, IngestClient};
use tidegate::store::Store as _;
use tidegate::usage::UsageRecord;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

const B_TOKEN: &str = "tg_client-b-0123456789";

/// Two clients with certificates, one of which has a token as well; nobody sends without one of them.
const CERTIFIED: &str = "[claims]\nanonymous = \"refuse\"\n[ingest]\ntokens_required = true\n\
    [[client]]\nname = \"a\"\ncertificate = \"DNS:a.example.com\"\n\
    [[client]]\nname = \"b\"\ncertificate = \"URI:spiffe://prod/b\"\n\
    token = \"tg_client-b-0123456789\"\n";

struct Bed {
    node: TestNode,
    servers: Authority,
    clients: Authority,
}

/// Connections of the ingest client over TLS.
struct OverTls(Client, SocketAddr);

impl Connector for OverTls {
    type Io = TlsStream<TcpStream>;

    async fn connect(&mut self) -> io::Result<Self::Io> {
        self.0.connect(self.1).await
    }

    fn server(&self) -> String {
        self.1.to_string()
    }
}

// === impl Bed ===

impl Bed {
    fn start() -> Self {
        let (servers, clients) = (Authority::new(), Authority::new());
        let ca = format!("client_ca = {:?}\n", clients.bundle());
        let node = TestNode::start(&(servers.issue("server").toml() + &ca + CERTIFIED));
        Self { node, servers, clients }
    }

    fn showing(&self, file: &str, names: &[SanType]) -> Client {
        let issued =
            self.clients.issue_with(file, |params| params.subject_alt_names = names.to_vec());
        Client::showing(&self.servers, &issued)
    }

    fn a(&self) -> Client {
        self.showing("a", &[SanType::DnsName("a.example.com".try_into().unwrap())])
    }

    fn b(&self) -> Client {
        self.showing("b", &[SanType::URI("spiffe://prod/b".try_into().unwrap())])
    }

    fn nobody(&self) -> Client {
        self.showing("nobody", &[SanType::DnsName("x.a.example.com".try_into().unwrap())])
    }

    /// The names of two clients.
    fn both(&self) -> Client {
        let names = [
            SanType::DnsName("a.example.com".try_into().unwrap()),
            SanType::URI("spiffe://prod/b".try_into().unwrap()),
        ];
        self.showing("both", &names)
    }

    /// Sends a record of a tenant as frames; returns the number of those that were acknowledged.
    async fn frames(
        &self,
        client: Client,
        (sender, tenant, token): (&str, &str, Option<&str>),
    ) -> u64 {
        let mut config = ClientConfig::new(sender.parse().unwrap());
        config.token = token.map(|token| token.parse().unwrap());
        let connector = OverTls(client, self.node.frames);
        let (sender, _rejections) = IngestClient::connect_by(connector, config).unwrap();
        let record = UsageRecord {
            tenant: tenant.into(),
            meter: "calls".into(),
            quantity: 1.into(),
            time_ns: 1_000_000_000,
            labels: "".into(),
        };
        // A sender that is refused ends, before or after it has taken the record.
        let sent = sender.send(&record).await.is_ok();
        let _ = sent && sender.flush().await.is_ok();
        sender.close(Duration::from_secs(20)).await.stats.records_acked
    }

    /// Sends lines, and returns true if the port closes the connection before it takes them.
    async fn lines_refused(&self, client: &Client, text: &str) -> bool {
        let before = self.node.records_stored();
        let mut tls = client.connect(self.node.lines).await.unwrap();
        tls.write_all(text.as_bytes()).await.unwrap();
        tls.flush().await.unwrap();
        let mut closed = std::pin::pin!(tls.read_u8());
        tokio::select! {
            _ = &mut closed => true,
            () = eventually("it is stored", async || self.node.records_stored() > before) => false,
        }
    }

    async fn owner(&self, sender: &str) -> Option<String> {
        let store = self.node.inner().ingest().unwrap().store().clone();
        store.owner(sender).await.unwrap().map(|owner| owner.to_string())
    }
}

#[tokio::test]
async fn a_certificate_names_a_sender_of_frames() {
    let bed = Bed::start();
    assert_eq!(bed.frames(bed.a(), ("of-a", "a", None)).await, 1);
    assert_eq!(bed.frames(bed.b(), ("of-b", "b", None)).await, 1);
    assert_eq!(bed.owner("of-a").await.as_deref(), Some("a"));
    // With its own token, and with the token alone, it is the same client, and owns the same names.
    for client in [bed.b(), bed.nobody()] {
        assert_eq!(bed.frames(client, ("of-b-2", "b", Some(B_TOKEN))).await, 1);
    }
    assert_eq!(bed.frames(bed.b(), ("of-b-2", "b", None)).await, 1);
    let stored = bed.node.records_stored();
    for (client, sent) in [
        (bed.nobody(), ("x", "a", None)),
        (bed.a(), ("x", "b", Some(B_TOKEN))),
        (bed.a(), ("x", "a", Some("tg_unknown-0123456789"))),
        (bed.both(), ("x", "a", None)),
        // A name of another client, and a tenant of another.
        (bed.a(), ("of-b", "a", None)),
        (bed.a(), ("of-a", "b", None)),
    ] {
        assert_eq!(bed.frames(client, sent).await, 0, "{sent:?}");
    }
    assert_eq!(bed.node.records_stored(), stored);
    assert_eq!(bed.owner("x").await, None);
}

#[tokio::test]
async fn a_certificate_names_a_sender_of_lines() {
    let bed = Bed::start();
    let line = |tenant: &str| format!("calls,tenant={tenant} quantity=1 1000000000\n");
    let with_token = |tenant: &str| format!("auth {B_TOKEN}\n{}", line(tenant));
    assert!(!bed.lines_refused(&bed.a(), &line("a")).await);
    assert!(!bed.lines_refused(&bed.b(), &with_token("b")).await);
    assert!(!bed.lines_refused(&bed.nobody(), &with_token("b")).await);
    let stored = bed.node.records_stored();
    for (client, text) in
        [(bed.nobody(), line("a")), (bed.a(), with_token("b")), (bed.both(), line("a"))]
    {
        assert!(bed.lines_refused(&client, &text).await, "{text}");
    }
    // A record of another's tenant is left out, those of its own are stored.
    let mixed = format!("{}{}", line("b"), line("a"));
    assert!(!bed.lines_refused(&bed.a(), &mixed).await);
    assert_eq!(bed.node.records_stored(), stored + 1);
}
