use crate::failure::Failure;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tidegate::capacity::Placement;
use tidegate_server::config::{Config, ExecutorEntry};
use tidegate_server::node::Node;

/// Attempts in flight at a shutdown are found by the restarted manager.
const GRACE: Duration = Duration::from_millis(100);

/// Plans that this process has made; numbers their folders.
static PLANS: AtomicU32 = AtomicU32::new(0);

/// Configuration of a node, for its start and restarts.
#[derive(Clone, Debug)]
pub struct Plan {
    placement: Placement,
    executors: Vec<SocketAddr>,
    folder: Arc<Folder>,
    address: SocketAddr,
    connections: usize,
}

/// Temporary folder, deleted on drop.
#[derive(Debug)]
struct Folder(PathBuf);

// === impl Plan ===

impl Plan {
    pub fn new(placement: Placement, executors: Vec<SocketAddr>, connections: usize) -> Self {
        let number = PLANS.fetch_add(1, Ordering::Relaxed);
        let name = format!("tidegate-drill-{}-{number}", std::process::id());
        let folder = Arc::new(Folder(std::env::temp_dir().join(name)));
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self { placement, executors, folder, address, connections }
    }

    /// Starts the node; a restart uses the same address.
    pub fn start(&mut self) -> Result<Node, Failure> {
        let mut config = Config::default();
        config.listen.address = self.address;
        config.listen.admin_address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        config.listen.shutdown_grace = GRACE;
        config.listen.connections_max = config.listen.connections_max.max(self.connections + 64);
        // Admission limits must not refuse: this drill is about placement.
        let limits = &mut config.admission.limits;
        (limits.global_limit, limits.normal) =
            (limits.global_limit.max(2_000), limits.normal.max(1_000));
        config.tasks.placement = self.placement;
        config.tasks.store = self.folder.path().join("tasks").display().to_string();
        config.tasks.slots = Some(0);
        let entry = |executor: &SocketAddr| ExecutorEntry::open(format!("http://{executor}"));
        config.tasks.executors = self.executors.iter().map(entry).collect();
        config.tasks.node = Some("drill".to_owned());
        (config.tasks.enabled, config.ingest.enabled) = (true, false);
        let node = Node::start(config, false).map_err(Failure::runtime)?;
        self.address = node.gateway().address();
        Ok(node)
    }

    /// Listen address, known after the first start.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

// === impl Folder ===

impl Folder {
    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that can't be deleted stays in the system's temporary folder.
        let _ = fs::remove_dir_all(&self.0);
    }
}
