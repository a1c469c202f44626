use crate::support::{TestGateway, Upstream};
use bytes::Bytes;
use http::{Request, Version};
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls::pki_types::ServerName;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// A certificate for localhost, in files that end with the test.
struct Certificate {
    folder: PathBuf,
    der: rustls::pki_types::CertificateDer<'static>,
}

impl Certificate {
    fn new(name: &str) -> Self {
        let made =
            rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()])
                .unwrap();
        let folder =
            std::env::temp_dir().join(format!("tidegate-tls-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("cert.pem"), made.cert.pem()).unwrap();
        let key = folder.join("key.pem");
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
        Self { folder, der: made.cert.der().clone() }
    }

    fn path(&self, file: &str) -> String {
        self.folder.join(file).display().to_string()
    }

    fn connector(&self, protocols: &[&str]) -> TlsConnector {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.der.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        TlsConnector::from(Arc::new(config))
    }
}

impl Drop for Certificate {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

async fn get(address: SocketAddr, connector: TlsConnector) -> (Version, String) {
    let tcp = TcpStream::connect(address).await.unwrap();
    let tls = connector.connect(ServerName::try_from("localhost").unwrap(), tcp).await.unwrap();
    let h2 = tls.get_ref().1.alpn_protocol() == Some(b"h2");
    let io = TokioIo::new(tls);
    let request = Request::get("https://localhost/")
        .header("host", "localhost")
        .body(Empty::<Bytes>::new())
        .unwrap();
    let response = if h2 {
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
        tokio::spawn(connection);
        sender.send_request(request).await.unwrap()
    } else {
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        tokio::spawn(connection);
        sender.send_request(request).await.unwrap()
    };
    let version = response.version();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (version, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn tls_in_front_speaks_what_the_client_chooses() {
    let certificate = Certificate::new("front");
    let upstream = Upstream::start().await;
    let config = format!(
        "[listen]\ntls_cert = \"{}\"\ntls_key = \"{}\"\n",
        certificate.path("cert.pem"),
        certificate.path("key.pem")
    );
    let gateway = TestGateway::start(&config, &[upstream.address]);
    let both = certificate.connector(&["h2", "http/1.1"]);
    assert_eq!(get(gateway.address, both).await, (Version::HTTP_2, "hello".to_owned()));
    let old = certificate.connector(&["http/1.1"]);
    assert_eq!(get(gateway.address, old).await, (Version::HTTP_11, "hello".to_owned()));
    assert_eq!(upstream.last().headers["x-forwarded-proto"], "https");
    gateway.balances().await;
}

/// An upstream behind TLS that offers these protocols.
async fn tls_upstream(certificate: &Certificate, protocols: &[&str]) -> SocketAddr {
    use rustls::pki_types::pem::PemObject;
    let key = rustls::pki_types::PrivateKeyDer::from_pem_file(certificate.path("key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der.clone()], key)
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (tcp, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(tls) = acceptor.accept(tcp).await else { return };
                let service = hyper::service::service_fn(
                    |request: Request<hyper::body::Incoming>| async move {
                        let text = format!("{:?}", request.version());
                        Ok::<_, std::convert::Infallible>(http::Response::new(
                            http_body_util::Full::<Bytes>::from(text),
                        ))
                    },
                );
                let _ = auto::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(tls), service)
                    .await;
            });
        }
    });
    address
}

#[tokio::test]
async fn tls_behind_speaks_what_the_upstream_chooses() {
    let certificate = Certificate::new("behind");
    for (protocols, expected) in
        [(&["h2", "http/1.1"][..], "HTTP/2.0"), (&["http/1.1"][..], "HTTP/1.1")]
    {
        let address = tls_upstream(&certificate, protocols).await;
        let config = format!(
            "[proxy]\ntls_ca = \"{}\"\n[[upstream]]\nurl = \"https://localhost:{}\"\n",
            certificate.path("cert.pem"),
            address.port()
        );
        let gateway = TestGateway::start(&config, &[]);
        for _ in 0..3 {
            assert_eq!(
                crate::support::Client::new(gateway.address).get("/").await.text(),
                expected
            );
        }
        gateway.balances().await;
    }
}

#[tokio::test]
async fn an_upstream_with_a_certificate_of_nobody_is_not_trusted() {
    let (theirs, ours) = (Certificate::new("theirs"), Certificate::new("ours"));
    let address = tls_upstream(&theirs, &["http/1.1"]).await;
    let config = format!(
        "[proxy]\ntls_ca = \"{}\"\n[[upstream]]\nurl = \"https://localhost:{}\"\n",
        ours.path("cert.pem"),
        address.port()
    );
    let gateway = TestGateway::start(&config, &[]);
    let answer = crate::support::Client::new(gateway.address).get("/").await;
    assert_eq!(
        (answer.status.as_u16(), answer.json()["reason"].as_str().unwrap()),
        (502, "connect_failed")
    );
    gateway.balances().await;
}

#[tokio::test]
async fn a_websocket_reaches_an_upstream_that_would_rather_speak_http2() {
    let certificate = Certificate::new("websocket");
    let address = tls_upstream(&certificate, &["h2", "http/1.1"]).await;
    let config = format!(
        "[proxy]\ntls_ca = \"{}\"\n[[upstream]]\nurl = \"https://localhost:{}\"\n",
        certificate.path("cert.pem"),
        address.port()
    );
    let gateway = TestGateway::start(&config, &[]);
    let client = crate::support::Client::new(gateway.address);
    assert_eq!(client.get("/").await.text(), "HTTP/2.0");
    let request = client
        .request("GET", "/")
        .header("connection", "upgrade")
        .header("upgrade", "websocket")
        .body(http_body_util::Full::default())
        .unwrap();
    assert_eq!(client.send(request).await.text(), "HTTP/1.1", "switching exists there alone");
    gateway.balances().await;
}
