//! A manager that lets nodes join, and the nodes.

use crate::bed::within;
use crate::folder::TempFolder;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tidegate::membership::MemberRole;
use tidegate_server::cluster::{
    Cluster, ClusterFolder, InitWish, JoinError, JoinWish, TokenUse, UdpAddresses, init, join,
    new_token,
};
use tidegate_server::config::Config;
use tidegate_server::node::{Node, NodeCluster};

const LIMIT: Duration = Duration::from_secs(20);

pub struct Manager {
    pub folder: TempFolder,
    pub node: Option<Node>,
    cluster: Arc<Cluster>,
}

/// A node that has joined, and its folder.
pub struct TempNode {
    pub cluster: Cluster,
    _folder: TempFolder,
}

/// A node of a configuration, on free ports. It has runtimes of its own, which can't be started within another.
pub fn node(folder: &TempFolder, toml: &str, cluster: Option<Arc<Cluster>>) -> Node {
    let mut config = Config::from_toml(toml).unwrap_or_else(|errors| panic!("{errors}"));
    let free: SocketAddr = "127.0.0.1:0".parse().unwrap();
    config.listen.address = free;
    config.listen.admin_address = free;
    config.workers.address = free;
    config.listen.threads = 1;
    config.tasks.store = folder.path().join("tasks").to_str().unwrap().to_owned();
    let member = cluster
        .map(|cluster| NodeCluster { cluster, on_refused: Box::new(|error| panic!("{error}")) });
    let starting = thread::spawn(|| Node::start_in(config, false, member));
    starting.join().unwrap().unwrap_or_else(|error| panic!("{error}"))
}

/// Settings of a port for workers with the certificate of a node.
pub fn workers_toml(folder: &ClusterFolder, more: &str) -> String {
    format!(
        "[ingest]\nenabled = false\n[tasks]\nslots = 0\n[workers]\nenabled = true\ntls_cert = {:?}\n\
         tls_key = {:?}\n{more}\n",
        folder.certificate(),
        folder.key(),
    )
}

impl Manager {
    pub fn start() -> Self {
        Self::start_after(|_| {})
    }

    /// A manager that is started after something has happened to the UDP address that it was made with.
    pub fn start_after(happens: impl FnOnce(SocketAddr)) -> Self {
        let folder = TempFolder::new("manager");
        let files = ClusterFolder::of(folder.path(), MemberRole::Manager);
        let wish = InitWish {
            cell: "main".to_owned(),
            node: "manager".to_owned(),
            host: "127.0.0.1".to_owned(),
            workers_port: 8_002,
            udp: UdpAddresses::default(),
        };
        happens(init(&files, &wish).unwrap().udp);
        let trusted = format!("tls_client_ca = {:?}\nnode_certificates = true", files.authority());
        let toml = workers_toml(&files, &trusted);
        let cluster = Arc::new(Cluster::open(files).unwrap());
        let node = node(&folder, &toml, Some(Arc::clone(&cluster)));
        Self { folder, node: Some(node), cluster }
    }

    pub fn inner(&self) -> &Node {
        self.node.as_ref().unwrap()
    }

    pub fn workers_address(&self) -> SocketAddr {
        self.inner().tasks().unwrap().workers_address().unwrap()
    }

    pub fn clients_url(&self) -> Option<String> {
        Some(format!("http://{}", self.inner().gateway().address()))
    }

    pub fn token(&self, role: MemberRole, uses: TokenUse, valid: Duration) -> String {
        new_token(self.cluster.folder(), role, uses, valid).unwrap().to_string()
    }

    pub fn join(&self, token: &str, role: MemberRole, name: &str) -> Result<TempNode, JoinError> {
        let folder = TempFolder::new("node");
        let files = ClusterFolder::of(folder.path(), role);
        let wish = JoinWish {
            target: format!("{token}@{}", self.workers_address()).parse().unwrap(),
            role,
            node: name.to_owned(),
            host: None,
            udp: UdpAddresses::default(),
        };
        let joined = join(&files, &wish);
        assert_eq!(files.has_node(), joined.is_ok());
        joined.map(|_| TempNode { cluster: Cluster::open(files).unwrap(), _folder: folder })
    }

    /// A node of a role that has joined with a token of its own.
    pub fn joined(&self, role: MemberRole, name: &str) -> TempNode {
        let token = self.token(role, TokenUse::Once, LIMIT);
        self.join(&token, role, name).unwrap()
    }

    /// Nodes that it has refused.
    pub fn refused(&self) -> u64 {
        self.cluster.desk().unwrap().counts().1
    }

    pub fn wait_for(&self, name: &str) {
        let membership = self.inner().membership().unwrap();
        within("it is a member", LIMIT, || membership.is_live(name));
    }

    pub fn wait_until_gone(&self, name: &str) {
        let membership = self.inner().membership().unwrap();
        within("it has left", LIMIT, || !membership.is_live(name));
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        if let Some(node) = self.node.take() {
            // Not within a runtime of a test.
            let _ = thread::spawn(move || node.shutdown()).join();
        }
    }
}
