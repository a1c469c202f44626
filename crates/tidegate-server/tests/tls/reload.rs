//! Certificates are replaced while a node serves.

use crate::authority::Authority;
use crate::client::Client;
use crate::node::{TestNode, eventually};
use rcgen::date_time_ymd;
use tokio::io::AsyncWriteExt as _;

#[tokio::test]
async fn a_renewed_certificate_is_shown_and_open_connections_go_on() {
    let authority = Authority::new();
    let server = authority.issue("server");
    let node = TestNode::start(&server.toml());
    let client = Client::trusting(&authority);
    let old = server.der();
    let mut open = client.connect(node.lines).await.unwrap();
    open.write_all(b"calls,tenant=a quantity=1 1000000000\n").await.unwrap();
    open.flush().await.unwrap();
    eventually("the first line is stored", async || node.records_stored() == 1).await;

    let renewed =
        authority.issue_with("renewed", |params| params.not_after = date_time_ymd(2999, 1, 1));
    let new = renewed.der();
    assert_ne!(old, new);
    server.replace_by(&renewed);
    for port in [node.data, node.admin, node.frames, node.lines] {
        eventually("the new certificate is shown", async || {
            let stream = client.connect(port).await.unwrap();
            stream.get_ref().1.peer_certificates().unwrap()[0] == new
        })
        .await;
    }
    open.write_all(b"calls,tenant=a quantity=1 2000000000\n").await.unwrap();
    open.flush().await.unwrap();
    eventually("the old connection goes on", async || node.records_stored() == 2).await;
    let metrics = client.get(node.admin, "/metrics").await.body;
    let expiry = "tidegate_tls_certificate_expiry_timestamp_seconds";
    for port in ["data", "admin", "frames", "lines"] {
        // 2999-01-01T00:00:00Z.
        assert!(metrics.contains(&format!("{expiry}{{port=\"{port}\"}} 32472144000")), "{metrics}");
        let reloads = format!("tidegate_tls_reloads_total{{port=\"{port}\",outcome=\"ok\"}}");
        assert!(metrics.contains(&reloads), "{metrics}");
    }
}

#[tokio::test]
async fn a_bad_certificate_leaves_the_old_one_in_force() {
    let authority = Authority::new();
    let server = authority.issue("server");
    let node = TestNode::start(&server.toml());
    let client = Client::trusting(&authority);
    let old = server.der();
    let failures = async || {
        let metrics = client.get(node.admin, "/metrics").await.body;
        let series = "tidegate_tls_reloads_total{port=\"data\",outcome=\"failed\"} ";
        let value = metrics.lines().find_map(|line| line.strip_prefix(series));
        value.unwrap().parse::<u64>().unwrap()
    };
    // Another certificate, without its key.
    let half = authority.issue("half");
    let new = half.der();
    std::fs::rename(&half.cert, &server.cert).unwrap();
    eventually("the change is noticed", async || failures().await >= 1).await;
    let noticed = failures().await;
    assert_eq!(client.get(node.data, "/health/live").await.certificate, old);
    // Longer than two looks at the files: one change is one failure.
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    assert_eq!(failures().await, noticed);
    std::fs::rename(&half.key, &server.key).unwrap();
    eventually("the pair is shown", async || {
        client.get(node.data, "/health/live").await.certificate == new
    })
    .await;
}

/// New authorities count for the next connection.
#[tokio::test]
async fn authorities_of_clients_are_reloaded_too() {
    let (servers, first, second) = (Authority::new(), Authority::new(), Authority::new());
    let ca = format!("client_ca = {:?}\n", first.bundle());
    let node = TestNode::start(&(servers.issue("server").toml() + &ca));
    let (one, two) = (first.issue("one"), second.issue("two"));
    let (one, two) = (Client::showing(&servers, &one), Client::showing(&servers, &two));
    assert_eq!(one.get(node.admin, "/health/live").await.status, 200);
    let health = ("GET", "/health/live");
    assert!(two.try_ask(node.admin, health, None, "").await.is_err());
    std::fs::rename(second.bundle(), first.bundle()).unwrap();
    eventually("the second authority counts", async || {
        two.try_ask(node.admin, health, None, "").await.is_ok()
    })
    .await;
    assert!(one.try_ask(node.admin, health, None, "").await.is_err());
}
