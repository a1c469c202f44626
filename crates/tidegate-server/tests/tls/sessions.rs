//! Workers that dial a manager by TLS, with a token.

use crate::authority::{Authority, Issued};
use crate::node::{TestNode, eventually};
use std::path::Path;
use std::time::Duration;
use tidegate_server::config::Config;
use tidegate_server::http::{ClientIdentity, ClientTls};
use tidegate_server::tasks::executor::{ExecutorConfig, MockRunner, Runner};
use tidegate_server::tasks::worker::{ManagerTarget, SessionWorker, WorkerSettings};

const TOKEN: &str = "tg_workers-0123456789";

fn manager(authority: &Authority) -> TestNode {
    let own = authority.issue("manager");
    let toml = format!(
        "[workers]\nenabled = true\ntls_cert = {:?}\ntls_key = {:?}\n\
         [[worker]]\nname = \"w\"\ntoken = \"{TOKEN}\"\n",
        own.cert, own.key
    );
    let mut config = Config::from_toml(&toml).unwrap();
    config.workers.address.set_port(0);
    TestNode::try_start_with(config).unwrap()
}

fn worker(node: &TestNode, ca: Option<&Path>, token: Option<&str>) -> SessionWorker {
    worker_showing(node, (ca, None), token)
}

fn worker_showing(
    node: &TestNode,
    (ca, shown): (Option<&Path>, Option<&Issued>),
    token: Option<&str>,
) -> SessionWorker {
    let address = node.inner().tasks().unwrap().workers_address().unwrap();
    let manager: ManagerTarget = format!("localhost:{}", address.port()).parse().unwrap();
    let files = shown.map(|own| ClientIdentity { cert: own.cert.clone(), key: own.key.clone() });
    let tls = ca.map(|ca| ClientTls::new(Some(ca), files.as_ref(), "--ca").unwrap());
    let settings = WorkerSettings {
        manager: manager.with_tls(tls),
        token: token.map(str::to_owned),
        executor: ExecutorConfig::new("far", 1),
    };
    let runner = Runner::Mock(MockRunner::new(Duration::ZERO, Vec::new()));
    SessionWorker::start(settings, runner).unwrap()
}

/// The first thing that a worker learns about its link.
async fn link(worker: &SessionWorker) -> Result<String, String> {
    let mut link = worker.link();
    while link.manager.is_none() && link.error.is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
        link = worker.link();
    }
    link.manager.ok_or_else(|| link.error.unwrap_or_default())
}

#[tokio::test]
async fn a_worker_joins_by_tls_with_its_token() {
    let authority = Authority::new();
    let node = manager(&authority);
    let bundle = authority.bundle();
    let joined = worker(&node, Some(&bundle), Some(TOKEN));
    link(&joined).await.unwrap();
    let hub = node.inner().tasks().unwrap().workers().unwrap();
    eventually("it is shown", async || {
        hub.list().workers.iter().any(|worker| worker.name == "far" && worker.connected)
    })
    .await;
}

#[tokio::test]
async fn without_the_token_the_authority_or_tls_nobody_joins() {
    let (authority, other) = (Authority::new(), Authority::new());
    let node = manager(&authority);
    let (bundle, foreign) = (authority.bundle(), other.bundle());
    let refused = worker(&node, Some(&bundle), Some("tg_another-0123456789"));
    assert!(link(&refused).await.unwrap_err().contains("not one of a [[worker]]"));
    assert!(refused.link().is_refused, "a wrong token is not tried again");
    let silent = worker(&node, Some(&bundle), None);
    assert!(link(&silent).await.unwrap_err().contains("TIDEGATE_TOKEN"));
    let distrusted = worker(&node, Some(&foreign), Some(TOKEN));
    assert!(link(&distrusted).await.unwrap_err().contains("TLS"));
    let plain = worker(&node, None, Some(TOKEN));
    link(&plain).await.unwrap_err();
    let hub = node.inner().tasks().unwrap().workers().unwrap();
    assert!(hub.list().workers.iter().all(|worker| !worker.connected));
}

/// A manager whose workers show certificates: one is known by that alone, one by a token, one by either.
fn certifying(authority: &Authority) -> TestNode {
    let own = authority.issue("manager");
    let toml = format!(
        "[workers]\nenabled = true\ntls_cert = {:?}\ntls_key = {:?}\ntls_client_ca = {:?}\n\
         [[worker]]\nname = \"a\"\ncertificate = \"DNS:a.example.com\"\n\
         [[worker]]\nname = \"b\"\ntoken = \"{TOKEN}\"\ncertificate = \"DNS:b.example.com\"\n",
        own.cert,
        own.key,
        authority.bundle()
    );
    let mut config = Config::from_toml(&toml).unwrap();
    config.workers.address.set_port(0);
    TestNode::try_start_with(config).unwrap()
}

#[tokio::test]
async fn a_certificate_names_a_worker_and_a_token_beside_it_must_agree() {
    let authority = Authority::new();
    let (node, bundle) = (certifying(&authority), authority.bundle());
    let named = |name: &str| {
        authority.issue_with(name, |params| {
            let dns = format!("{name}.example.com").as_str().try_into().unwrap();
            params.subject_alt_names = vec![rcgen::SanType::DnsName(dns)];
        })
    };
    let (a, b, stranger) = (named("a"), named("b"), named("stranger"));
    for (shown, token) in [(&a, None), (&b, None), (&b, Some(TOKEN)), (&stranger, Some(TOKEN))] {
        let joined = worker_showing(&node, (Some(&bundle), Some(shown)), token);
        link(&joined).await.unwrap();
        let hub = node.inner().tasks().unwrap().workers().unwrap();
        drop(joined);
        eventually("its name is free", async || {
            hub.list().workers.iter().all(|worker| !worker.connected)
        })
        .await;
    }
    let nobody = worker_showing(&node, (Some(&bundle), Some(&stranger)), None);
    assert!(link(&nobody).await.unwrap_err().contains("--cert"));
    let thief = worker_showing(&node, (Some(&bundle), Some(&a)), Some(TOKEN));
    assert!(link(&thief).await.unwrap_err().contains("different entries"));
    assert!(thief.link().is_refused, "that is not tried again");
    let bare = worker(&node, Some(&bundle), Some(TOKEN));
    link(&bare).await.unwrap_err();
}
