//! A whole node on free loopback ports, with a mock executor and stores in a folder.

use crate::folder::TempFolder;
use std::net::SocketAddr;
use std::time::Duration;
use tidegate_server::config::{Config, LoadSource, LocalExecutor};
use tidegate_server::node::{Node, NodeError};

pub const CLIENT: &str = "tg_client-a-0123456789";
pub const OPERATOR: &str = "tg_operator-0123456789";

/// A client, an operator, and no anonymous requests.
pub const IDENTITIES: &str = "[claims]\nanonymous = \"refuse\"\n\
    [[client]]\nname = \"a\"\ntoken = \"tg_client-a-0123456789\"\nmax_priority = \"normal\"\n\
    [[client]]\nname = \"b\"\ntoken = \"tg_client-b-0123456789\"\n\
    [[operator]]\nname = \"ops\"\ntoken = \"tg_operator-0123456789\"\n";

pub struct TestNode {
    node: Option<Node>,
    pub data: SocketAddr,
    pub admin: SocketAddr,
    pub frames: SocketAddr,
    pub lines: SocketAddr,
    _folder: TempFolder,
}

impl TestNode {
    pub fn start(toml: &str) -> Self {
        Self::try_start(toml).unwrap_or_else(|error| panic!("{error}"))
    }

    pub fn try_start(toml: &str) -> Result<Self, NodeError> {
        Self::try_start_with(Config::from_toml(toml).unwrap_or_else(|errors| panic!("{errors}")))
    }

    pub fn try_start_with(mut config: Config) -> Result<Self, NodeError> {
        let folder = TempFolder::new("tls");
        let free: SocketAddr = "127.0.0.1:0".parse().unwrap();
        config.listen.address = free;
        config.listen.admin_address = free;
        config.listen.threads = 1;
        config.routing.load_source = LoadSource::Headers;
        config.ingest.frames_address = free;
        config.ingest.lines_address = free;
        config.ingest.store = folder.path().join("usage").to_str().unwrap().to_owned();
        config.tasks.store = folder.path().join("tasks").to_str().unwrap().to_owned();
        config.tasks.executor = LocalExecutor::Mock;
        // A node has runtimes of its own, which can't be started within that of the test.
        let node = std::thread::spawn(|| Node::start(config, false)).join().unwrap()?;
        let (data, admin) = (node.gateway().address(), node.gateway().admin_address());
        let ingest = node.ingest().unwrap();
        let (frames, lines) = (ingest.frames_address(), ingest.lines_address());
        Ok(Self { node: Some(node), data, admin, frames, lines, _folder: folder })
    }

    pub fn inner(&self) -> &Node {
        self.node.as_ref().unwrap()
    }

    pub fn records_stored(&self) -> u64 {
        self.inner().ingest().unwrap().stats().counts.records_stored
    }
}

impl Drop for TestNode {
    fn drop(&mut self) {
        if let Some(node) = self.node.take() {
            std::thread::spawn(|| node.shutdown()).join().unwrap();
        }
    }
}

/// Waits until something is so; fails after half a minute, by which no test is judged.
pub async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    for _ in 0..600 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("never: {what}");
}
