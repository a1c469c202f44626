//! Workers that dial a manager by TLS, with a token.

use crate::authority::Authority;
use crate::node::{TestNode, eventually};
use std::path::Path;
use std::time::Duration;
use tidegate_server::config::Config;
use tidegate_server::http::ClientTls;
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
    let address = node.inner().tasks().unwrap().workers_address().unwrap();
    let manager: ManagerTarget = format!("localhost:{}", address.port()).parse().unwrap();
    let tls = ca.map(|ca| ClientTls::new(Some(ca), None, "--ca").unwrap());
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
