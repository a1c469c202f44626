use crate::bed::within;
use crate::cluster_node::{Manager, TempNode, node, workers_toml};
use crate::folder::TempFolder;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, Issuer, KeyPair, SanType, date_time_ymd,
};
use std::fs;
use std::net::SocketAddr;
use std::time::Duration;
use tidegate::membership::MemberRole;
use tidegate_server::cluster::{ClusterFolder, node_tls};
use tidegate_server::http::ClientTls;
use tidegate_server::tasks::executor::{ExecutorConfig, MockRunner, Runner};
use tidegate_server::tasks::worker::{ManagerTarget, SessionWorker, WorkerSettings};

const LIMIT: Duration = Duration::from_secs(20);

fn worker(at: SocketAddr, name: &str, tls: ClientTls) -> SessionWorker {
    let manager: ManagerTarget = at.to_string().parse().unwrap();
    let settings = WorkerSettings {
        manager: manager.with_tls(Some(tls)),
        token: None,
        executor: ExecutorConfig::new(name.to_owned(), 1),
    };
    let runner = Runner::Mock(MockRunner::new(Duration::ZERO, Vec::new()));
    SessionWorker::start(settings, runner).unwrap()
}

fn tls(node: &TempNode) -> ClientTls {
    node_tls(node.cluster.folder(), &node.cluster.node().cell).unwrap()
}

/// Outcome of starting a worker: connected, or the error.
fn link(worker: &SessionWorker) -> String {
    let link = worker.wait_for_link(LIMIT);
    link.manager.map_or_else(|| link.error.unwrap_or_default(), |_| "connected".to_owned())
}

#[test]
fn a_worker_is_known_by_its_certificate_alone_and_by_its_own_name() {
    let manager = Manager::start();
    let w1 = manager.joined(MemberRole::Worker, "w1");
    let at = manager.workers_address();
    let connected = worker(at, "w1", tls(&w1));
    assert_eq!(link(&connected), "connected");
    let hub = manager.inner().tasks().unwrap().workers().unwrap();
    within("it is shown", LIMIT, || {
        hub.list().workers.iter().any(|it| it.name == "w1" && it.connected)
    });
    let other_name = link(&worker(at, "w2", tls(&w1)));
    assert!(other_name.contains("worker w1 of cell main"), "{other_name}");
}

#[test]
fn certificates_of_other_roles_and_none_execute_nothing() {
    let manager = Manager::start();
    let at = manager.workers_address();
    for role in [MemberRole::Gate, MemberRole::Manager] {
        let node = manager.joined(role, &format!("x-{role}"));
        let refused = link(&worker(at, &node.cluster.node().node, tls(&node)));
        assert!(refused.contains("expected a worker of cell main"), "{role}: {refused}");
    }
    let files = manager.folder.path().join("cluster/manager/ca.pem");
    let bare = ClientTls::new(Some(&files), None, "--ca").unwrap();
    let refused = link(&worker(at, "w1", bare));
    assert_ne!(refused, "connected");
    assert!(manager.inner().tasks().unwrap().workers().unwrap().list().workers.is_empty());
}

#[test]
fn a_certificate_of_another_cluster_gets_nowhere() {
    let (manager, other) = (Manager::start(), Manager::start());
    let foreign = other.joined(MemberRole::Worker, "w1");
    // The worker refuses the manager of another cluster...
    let refused = link(&worker(manager.workers_address(), "w1", tls(&foreign)));
    assert!(refused.contains("TLS") && refused.contains("UnknownIssuer"), "{refused}");
    // ... and one that did not look would be refused by it.
    let own = manager.joined(MemberRole::Worker, "w2");
    for file in ["node.pem", "node.key"] {
        let from = foreign.cluster.folder().path().join(file);
        fs::copy(from, own.cluster.folder().path().join(file)).unwrap();
    }
    let refused = link(&worker(manager.workers_address(), "w1", tls(&own)));
    assert_ne!(refused, "connected");
    assert!(manager.inner().tasks().unwrap().workers().unwrap().list().workers.is_empty());
}

#[test]
fn an_expired_certificate_gets_nowhere() {
    let manager = Manager::start();
    let node = manager.joined(MemberRole::Worker, "w1");
    // As the authority would have signed it years ago.
    let authority = manager.folder.path().join("cluster/manager");
    let read = |name: &str| fs::read_to_string(authority.join(name)).unwrap();
    let name: serde_json::Value = serde_json::from_str(&read("authority.json")).unwrap();
    let mut issuer = CertificateParams::default();
    issuer.distinguished_name = DistinguishedName::new();
    issuer.distinguished_name.push(DnType::CommonName, name["name"].as_str().unwrap());
    let issuer = Issuer::new(issuer, KeyPair::from_pem(&read("ca.key")).unwrap());
    let mut params = CertificateParams::default();
    params.subject_alt_names =
        vec![SanType::URI("tidegate://main/worker/w1".to_owned().try_into().unwrap())];
    let files = node.cluster.folder();
    let key = KeyPair::from_pem(&fs::read_to_string(files.key()).unwrap()).unwrap();
    for (until, expected) in [(date_time_ymd(2099, 1, 1), true), (date_time_ymd(2020, 1, 1), false)]
    {
        params.not_after = until;
        let signed = params.signed_by(&key, &issuer).unwrap().pem();
        fs::write(files.certificate(), signed).unwrap();
        let outcome = link(&worker(manager.workers_address(), "w1", tls(&node)));
        assert_eq!(outcome == "connected", expected, "{outcome}");
    }
}

#[test]
fn the_certificate_of_a_worker_or_a_gate_serves_as_no_manager() {
    let manager = Manager::start();
    let honest = manager.joined(MemberRole::Worker, "w1");
    for role in [MemberRole::Worker, MemberRole::Gate] {
        let thief = manager.joined(role, &format!("thief-{role}"));
        let folder = TempFolder::new("thief");
        let files: &ClusterFolder = thief.cluster.folder();
        let fake = node(&folder, &workers_toml(files, ""), None);
        let at = fake.tasks().unwrap().workers_address().unwrap();
        let refused = link(&worker(at, "w1", tls(&honest)));
        assert!(refused.contains("TLS"), "{role}: {refused}");
        std::thread::spawn(move || fake.shutdown()).join().unwrap();
    }
}
