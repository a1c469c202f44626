use crate::commands::until_signal::failed;
use crate::failure::Failure;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tidegate::capacity::Placement;
use tidegate_server::config::Config;
use tidegate_server::control::TaskTerms;
use tidegate_server::gateway::{Beside, Gateway};
use tidegate_server::manager::TaskNode;

/// What is under way then is looked for by the next life.
const GRACE: Duration = Duration::from_millis(100);

/// Stages of this process so far.
static STAGES: AtomicU32 = AtomicU32::new(0);

/// A manager behind its gateway, with a store of its own.
pub struct Node {
    gateway: Gateway,
    tasks: TaskNode,
}

/// How a node is made, also again after it ended.
#[derive(Clone, Debug)]
pub struct Plan {
    placement: Placement,
    executors: Vec<SocketAddr>,
    folder: Arc<Folder>,
    address: SocketAddr,
    connections: usize,
}

/// A folder that is gone when nobody needs it any more.
#[derive(Debug)]
struct Folder(PathBuf);

// === impl Plan ===

impl Plan {
    pub fn new(placement: Placement, executors: Vec<SocketAddr>, connections: usize) -> Self {
        let number = STAGES.fetch_add(1, Ordering::Relaxed);
        let name = format!("tidegate-drill-{}-{number}", std::process::id());
        let folder = Arc::new(Folder(std::env::temp_dir().join(name)));
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self { placement, executors, folder, address, connections }
    }

    /// Starts it. Started again it listens where it did before.
    pub fn start(&mut self) -> Result<Node, Failure> {
        let mut config = Config::default();
        config.listen.address = self.address;
        config.listen.admin_address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        config.listen.shutdown_grace = GRACE;
        config.listen.connections_max = config.listen.connections_max.max(self.connections + 64);
        // Nobody should be refused for what the drill is not about.
        let limits = &mut config.admission.limits;
        (limits.global_limit, limits.normal) =
            (limits.global_limit.max(2_000), limits.normal.max(1_000));
        config.tasks.placement = self.placement;
        config.tasks.store = self.folder.path().join("tasks").display().to_string();
        config.tasks.slots = Some(0);
        let url = |executor: &SocketAddr| format!("http://{executor}");
        config.tasks.executors = self.executors.iter().map(url).collect();
        config.tasks.node = Some("drill".to_owned());
        let tasks = TaskNode::start(&config.tasks, 0, GRACE).map_err(failed)?;
        let timeout_ms = u64::try_from(config.tasks.timeout.as_millis()).unwrap_or(u64::MAX);
        let beside = Beside {
            ingest: None,
            tasks: Some(tasks.desk().clone()),
            task_meters: Some(Arc::clone(tasks.meters())),
            task_terms: TaskTerms { timeout_ms, ..TaskTerms::default() },
        };
        let gateway = Gateway::start_beside(config, beside).map_err(failed)?;
        self.address = gateway.address();
        Ok(Node { gateway, tasks })
    }

    /// Where it listens, once it was started.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

// === impl Node ===

impl Node {
    pub fn end(self) {
        self.gateway.shutdown();
        self.tasks.shutdown();
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
        // What can't be deleted lies in the system's temporary folder.
        let _ = fs::remove_dir_all(&self.0);
    }
}
