use std::net::SocketAddr;
use std::path::Path;
use tidegate_server::cluster::Cluster;

/// Port for workers of a manager that has joined another one.
const WORKERS_PORT: u16 = 8_002;

/// Settings of a manager that nobody gives: its port for workers is at the address that others know, and admits
/// nodes by their certificates. Beyond loopback, clients are served by TLS with the node's certificate.
pub fn manager_presets(cluster: &Cluster) -> Vec<(String, String)> {
    let (node, folder) = (cluster.node(), cluster.folder());
    let own = node.manager.as_ref().filter(|_| cluster.desk().is_some());
    let port = own.and_then(|manager| manager.workers.rsplit_once(':')?.1.parse().ok());
    let address = SocketAddr::new(node.udp.ip(), port.unwrap_or(WORKERS_PORT)).to_string();
    let mut presets = vec![
        preset("workers.address", &address),
        preset("workers.node_certificates", "true"),
        path("workers.tls_cert", &folder.certificate()),
        path("workers.tls_key", &folder.key()),
        path("workers.tls_client_ca", &folder.authority()),
    ];
    presets.extend(clients_tls(cluster));
    presets
}

/// Settings of a gate that nobody gives: the managers' certificates are those of the cluster.
pub fn gate_presets(cluster: &Cluster) -> Vec<(String, String)> {
    let mut presets = clients_tls(cluster);
    let manager = cluster.node().manager.as_ref();
    let clients = manager.and_then(|manager| manager.clients.as_deref());
    if clients.is_some_and(|url| url.starts_with("https://")) {
        presets.push(path("proxy.tls_ca", &cluster.folder().authority()));
    }
    presets
}

fn clients_tls(cluster: &Cluster) -> Vec<(String, String)> {
    if cluster.node().udp.ip().is_loopback() {
        return Vec::new();
    }
    let folder = cluster.folder();
    vec![path("listen.tls_cert", &folder.certificate()), path("listen.tls_key", &folder.key())]
}

fn preset(key: &str, value: &str) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

fn path(key: &str, path: &Path) -> (String, String) {
    preset(key, &path.to_string_lossy())
}
