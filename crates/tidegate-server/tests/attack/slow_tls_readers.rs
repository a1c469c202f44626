//! Clients that do not read their responses under TLS, which has buffers of its own.

use crate::measure::{alone, descriptors, resident_kib};
use crate::slow_readers::{GET_LARGE, PIECE, large, read_whole, settings, stalled};
use crate::support::{TestGateway, eventually};
use rustls::pki_types::ServerName;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

const READERS: usize = 100;
const PIECES: usize = 600;

/// Memory of a reader at most: that of one without TLS, 32 KiB of records that wait for its socket, and 64 KiB for
/// the state of TLS on both sides, of which one is the test's.
const READER_KIB_MAX: u64 = 320;

/// Files that end with the test.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn certificate() -> (Folder, TlsConnector) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let name = format!("tidegate-slow-tls-{}", std::process::id());
    let folder = Folder(std::env::temp_dir().join(name));
    std::fs::create_dir_all(&folder.0).unwrap();
    std::fs::write(folder.0.join("cert.pem"), made.cert.pem()).unwrap();
    let key = folder.0.join("key.pem");
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    std::fs::set_permissions(key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (folder, TlsConnector::from(Arc::new(config)))
}

async fn ask(gateway: &TestGateway, connector: &TlsConnector) -> TlsStream<TcpStream> {
    let tcp = TcpStream::connect(gateway.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut tls = connector.connect(name, tcp).await.unwrap();
    tls.write_all(GET_LARGE).await.unwrap();
    tls
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_under_tls_that_stop_hold_little_and_one_that_resumes_gets_all() {
    let _alone = alone().await;
    let (folder, connector) = certificate();
    let (cert, key) = (folder.0.join("cert.pem"), folder.0.join("key.pem"));
    let (upstream, written) = large(PIECES).await;
    let tls = format!("tls_cert = {cert:?}\ntls_key = {key:?}\n");
    let config = settings(&format!("http://{}", upstream.address), "");
    let config = config.replace("threads = 1\n", &format!("threads = 1\n{tls}"));
    let gateway = TestGateway::start(&config, &[]);
    read_whole(ask(&gateway, &connector).await).await;
    let (before, open) = (resident_kib(), descriptors());
    let mut readers = Vec::new();
    for _ in 0..READERS {
        readers.push(ask(&gateway, &connector).await);
    }
    stalled(&written).await;
    let each = resident_kib().saturating_sub(before) / READERS as u64;
    assert!(each <= READER_KIB_MAX, "{each} KiB for each of {READERS} readers");
    for reader in readers.drain(..3) {
        assert_eq!(read_whole(reader).await, PIECES * PIECE);
    }
    drop(readers);
    gateway.balances().await;
    eventually("their descriptors are closed", || descriptors() < open + 10).await;
}
