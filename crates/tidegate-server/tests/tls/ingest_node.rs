//! A node that only ingests has TLS on its three ports too.

use crate::authority::Authority;
use crate::client::Client;
use crate::folder::TempFolder;
use crate::node::{IDENTITIES, OPERATOR, eventually};
use std::net::SocketAddr;
use std::time::Duration;
use tidegate_server::config::Config;
use tidegate_server::ingest::IngestNode;
use tokio::io::AsyncWriteExt as _;

fn config(toml: &str, folder: &TempFolder) -> Config {
    let mut config = Config::from_toml(toml).unwrap_or_else(|errors| panic!("{errors}"));
    let free: SocketAddr = "127.0.0.1:0".parse().unwrap();
    config.listen.admin_address = free;
    config.ingest.frames_address = free;
    config.ingest.lines_address = free;
    config.ingest.store = folder.path().join("usage").to_str().unwrap().to_owned();
    config
}

#[tokio::test]
async fn an_ingesting_node_speaks_tls() {
    let (authority, folder) = (Authority::new(), TempFolder::new("ingest-tls"));
    let server = authority.issue("server");
    let toml = server.toml() + IDENTITIES;
    let node = IngestNode::start(&config(&toml, &folder)).unwrap();
    let (client, admin) = (Client::trusting(&authority), node.admin_address());
    let mut lines = client.connect(node.view().lines_address()).await.unwrap();
    lines.write_all(b"calls,tenant=a quantity=1 1000000000\n").await.unwrap();
    lines.flush().await.unwrap();
    let stored = || node.view().stats().counts.records_stored;
    eventually("the line is stored", async || stored() == 1).await;
    assert_eq!(client.get(admin, "/health/live").await.status, 200);
    assert_eq!(client.get(admin, "/v1/stats").await.status, 401);
    let stats = client.ask(admin, ("GET", "/v1/stats"), Some(OPERATOR), "").await;
    assert_eq!(stats.status, 200);
    let metrics = client.get(admin, "/metrics").await.body;
    for port in ["admin", "frames", "lines"] {
        let expiry = "tidegate_tls_certificate_expiry_timestamp_seconds";
        assert!(metrics.contains(&format!("{expiry}{{port=\"{port}\"}}")), "{metrics}");
    }
    let renewed = authority.issue("renewed");
    let new = renewed.der();
    server.replace_by(&renewed);
    eventually("the new certificate is shown", async || {
        client.get(admin, "/health/live").await.certificate == new
    })
    .await;
    tokio::task::spawn_blocking(move || node.shutdown(Duration::from_secs(30))).await.unwrap();
}

#[test]
fn an_ingesting_node_tells_all_that_is_wrong_with_its_files() {
    let (authority, folder) = (Authority::new(), TempFolder::new("ingest-tls"));
    let server = authority.issue("server");
    server.set_key_mode(0o644);
    let Err(error) = IngestNode::start(&config(&server.toml(), &folder)) else {
        panic!("it started");
    };
    assert!(error.to_string().contains("admin, frames, lines: every user can read"), "{error}");
}
