//! A node with two clients and an operator, on free ports, with tasks in a folder.

use crate::folder::TempFolder;
use crate::support::{Answer, Client};
use http_body_util::Full;
use std::net::SocketAddr;
use tidegate_server::config::{Config, LoadSource};
use tidegate_server::node::Node;

pub const A: &str = "tg_client-a-0123456789";
pub const B: &str = "tg_client-b-0123456789";
pub const OPERATOR: &str = "tg_operator-0123456789";

/// Clients a and b, an operator, and anonymous requests up to Low.
pub const IDENTITIES: &str = "[claims]\nanonymous = \"low\"\n\
    [[client]]\nname = \"a\"\ntoken = \"tg_client-a-0123456789\"\nmax_priority = \"normal\"\n\
    [[client]]\nname = \"b\"\ntoken = \"tg_client-b-0123456789\"\n\
    [[operator]]\nname = \"ops\"\ntoken = \"tg_operator-0123456789\"\n";

/// A running node that ends with its test.
pub struct TestNode {
    node: Option<Node>,
    pub data: SocketAddr,
    pub admin: SocketAddr,
    _folder: TempFolder,
}

impl TestNode {
    /// Starts one with this configuration and a mock executor.
    pub fn start(toml: &str) -> Self {
        let folder = TempFolder::new("identity");
        let mut config = Config::from_toml(toml).unwrap_or_else(|errors| panic!("{errors}"));
        config.listen.address = "127.0.0.1:0".parse().unwrap();
        config.listen.admin_address = "127.0.0.1:0".parse().unwrap();
        config.listen.threads = 1;
        config.routing.load_source = LoadSource::Headers;
        config.ingest.enabled = toml.contains("tenants");
        config.ingest.frames_address = "127.0.0.1:0".parse().unwrap();
        config.ingest.lines_address = "127.0.0.1:0".parse().unwrap();
        config.ingest.store = folder.path().join("usage").to_str().unwrap().to_owned();
        config.tasks.store = folder.path().join("tasks").to_str().unwrap().to_owned();
        config.tasks.executor = tidegate_server::config::LocalExecutor::Mock;
        // A node has runtimes of its own, which can't be started within that of the test.
        let node = std::thread::spawn(|| Node::start(config, false).unwrap()).join().unwrap();
        let (data, admin) = (node.gateway().address(), node.gateway().admin_address());
        Self { node: Some(node), data, admin, _folder: folder }
    }
}

impl TestNode {
    pub fn inner(&self) -> &Node {
        self.node.as_ref().unwrap()
    }
}

impl Drop for TestNode {
    fn drop(&mut self) {
        if let Some(node) = self.node.take() {
            std::thread::spawn(|| node.shutdown()).join().unwrap();
        }
    }
}

/// Sends a request with this token, if any, and a JSON body.
pub async fn ask(
    port: SocketAddr,
    method: &str,
    path: &str,
    token: Option<&str>,
    body: &str,
) -> Answer {
    let client = Client::new(port);
    let mut request = client.request(method, path).header("content-type", "application/json");
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    client.send(request.body(Full::from(body.to_owned())).unwrap()).await
}
