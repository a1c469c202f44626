use super::env_key::{EnvKey, EnvKeyError};
use super::handle::ManagerHandle;
use super::link::{ExecutorTarget, HttpTarget};
use super::local_executor::{LocalExecutor, LocalExecutorError};
use super::manager::{Manager, ManagerExecutors};
use super::metrics::ManagerMeters;
use super::sealed_elsewhere::SealedElsewhere;
use super::sessions::{HubSettings, SessionPort, SessionPortError, WorkerHub};
use super::settings::ManagerSettings;
use crate::cluster::{Cluster, TrustedNodes};
use crate::config::{ExecutorEntry, TasksConfig, WorkersConfig};
use crate::http::tls::{PortFiles, TlsPort, TlsSetupErrors, tasks_tls};
use crate::tasks::execution::CapacityReport;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tidegate::capacity::Placement;
use tidegate::ledger::{AnyLedger, LedgerError};
use tidegate::membership::MemberRole;
use tidegate::store::StoreError;
use tidegate::task::TaskLimits;
use tidegate::tasks::AnyTaskStore;
use tokio::runtime::Builder;

/// Task manager with its store, its slot ledger and, if configured, an executor of this process.
pub struct TaskNode {
    manager: Manager,
    local_executor: Option<LocalExecutor>,
    workers_address: Option<SocketAddr>,
    workers_tls: Option<Arc<TlsPort>>,
    sealed_elsewhere: Option<SealedElsewhere>,
    grace: Duration,
}

/// Error that keeps the task manager from starting. Nothing is left running.
#[derive(Debug, thiserror::Error)]
pub enum TaskNodeError {
    /// The store can't be opened.
    #[error("{0}; choose another store with --task-store, or --no-tasks for none")]
    Store(#[from] StoreError),
    /// The key of tasks' environments can't be read or made.
    #[error(transparent)]
    EnvKey(#[from] EnvKeyError),
    /// The slot ledger can't be opened.
    #[error("{0}; choose another slot ledger with --slot-ledger")]
    Ledger(#[from] LedgerError),
    /// The executor of this process can't be started.
    #[error(transparent)]
    Executor(#[from] LocalExecutorError),
    /// The port for workers can't be opened.
    #[error(transparent)]
    Workers(#[from] SessionPortError),
    /// Workers shall be nodes of a cluster, and this node is in none.
    #[error(
        "workers.node_certificates: on, and this node is in no cluster; run `tidegate cluster init` first, or turn it off"
    )]
    NoCluster,
    /// TLS to executors can't be set up.
    #[error(transparent)]
    Tls(#[from] TlsSetupErrors),
    /// The system refused a thread or a runtime.
    #[error("the system refused a thread: {0}")]
    System(#[from] io::Error),
}

// === impl TaskNode ===

impl TaskNode {
    /// Opens store and slot ledger, and starts the executor of this process and the manager. `port` distinguishes
    /// unnamed managers of one machine that share a store; `cluster` is that of this node, if it is in one.
    ///
    /// # Errors
    ///
    /// When one of them can't be opened or started. Nothing is left running.
    pub fn start(
        config: &TasksConfig,
        workers: &WorkersConfig,
        cluster: Option<&Cluster>,
        port: u16,
        grace: Duration,
    ) -> Result<Self, TaskNodeError> {
        let env_key = Arc::new(env_key(config)?);
        let tls = tasks_tls(config)?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (store, sealed_elsewhere, ledger) = runtime.block_on(async {
            let store = AnyTaskStore::open(&config.store).await?;
            let sealed_elsewhere = SealedElsewhere::find(&store, &env_key).await?;
            let ledger = match config.slot_ledger.as_str() {
                "memory" => AnyLedger::open("memory:").await?,
                url => AnyLedger::open(url).await?,
            };
            Ok::<_, TaskNodeError>((store, sealed_elsewhere, ledger))
        })?;
        if let Some(sealed) = &sealed_elsewhere {
            tracing::warn!("{sealed}");
        }
        let files = workers.tls.as_ref().filter(|_| workers.enabled);
        let [workers_tls] = TlsPort::load([PortFiles { name: "workers", files, protocols: &[] }])?;
        let sessions = match workers.enabled {
            true => Some(SessionPort::bind(workers.address, workers_tls.clone())?),
            false => None,
        };
        let workers_address = sessions.as_ref().map(SessionPort::address);
        let local_executor = match config.local_slots() {
            0 => None,
            slots => Some(LocalExecutor::start(config, slots, &local_name(config, port))?),
        };
        let remote = |ExecutorEntry { url, token }: ExecutorEntry| {
            ExecutorTarget::Http(HttpTarget { url, token, tls: tls.clone() })
        };
        let mut targets: Vec<ExecutorTarget> =
            config.executors.iter().cloned().map(remote).collect();
        targets.extend(
            local_executor.as_ref().map(|local| ExecutorTarget::Local(local.executor().clone())),
        );
        let settings = ManagerSettings { env_key: Some(env_key), ..settings(config, port) };
        let hub = HubSettings {
            manager: settings.owner.clone(),
            lease: settings.lease,
            identities: workers.identities.clone(),
            nodes: trusted_workers(workers, cluster)?,
            desk: cluster.and_then(Cluster::desk).cloned(),
            reserved_names: targets.iter().map(ExecutorTarget::name).collect(),
            updates_max: workers.updates_max,
        };
        let executors = ManagerExecutors { targets, workers: sessions.map(|port| (port, hub)) };
        let (store, ledger) = (Arc::new(store), Arc::new(ledger));
        let manager = Manager::start(settings, executors, store, ledger, runtime, grace)?;
        Ok(Self { manager, local_executor, workers_address, workers_tls, sealed_elsewhere, grace })
    }

    /// Handle for submissions and queries.
    #[must_use]
    pub fn handle(&self) -> &ManagerHandle {
        self.manager.handle()
    }

    /// Counters, histograms and gauges.
    #[must_use]
    pub fn meters(&self) -> &Arc<ManagerMeters> {
        self.manager.meters()
    }

    /// Workers that dial, if there is a port for them.
    #[must_use]
    pub fn workers(&self) -> Option<&Arc<WorkerHub>> {
        self.manager.workers()
    }

    /// Address of the port for workers, if there is one.
    #[must_use]
    pub fn workers_address(&self) -> Option<SocketAddr> {
        self.workers_address
    }

    /// TLS of the port for workers, if it has it.
    #[must_use]
    pub fn workers_tls(&self) -> Option<&Arc<TlsPort>> {
        self.workers_tls.as_ref()
    }

    /// Capacity of the executor of this process, if there is one.
    #[must_use]
    pub fn capacity(&self) -> Option<CapacityReport> {
        self.local_executor.as_ref().map(|local| local.executor().capacity())
    }

    /// Queued tasks at the start whose environments can't be opened, if there were any.
    #[must_use]
    pub fn sealed_elsewhere(&self) -> Option<&SealedElsewhere> {
        self.sealed_elsewhere.as_ref()
    }

    /// Accepts nothing more, lets local executions finish within the grace period, and leaves queued tasks to the
    /// next start.
    pub fn shutdown(self) {
        let began = std::time::Instant::now();
        self.manager.shutdown();
        if let Some(local) = self.local_executor {
            local.shutdown(self.grace.saturating_sub(began.elapsed()));
        }
    }
}

/// Nodes that may be workers, where their certificates admit them.
fn trusted_workers(
    workers: &WorkersConfig,
    cluster: Option<&Cluster>,
) -> Result<Option<TrustedNodes>, TaskNodeError> {
    match (workers.node_certificates, cluster) {
        (false, _) => Ok(None),
        (true, None) => Err(TaskNodeError::NoCluster),
        (true, Some(cluster)) => {
            let cell = cluster.node().cell.clone();
            Ok(Some(TrustedNodes { cell, role: MemberRole::Worker }))
        }
    }
}

/// The key that seals tasks' environments: of its file, or beside the store.
fn env_key(config: &TasksConfig) -> Result<EnvKey, EnvKeyError> {
    let is_shared = config.store.contains("://");
    let beside = if is_shared { "tidegate-tasks" } else { config.store.trim_end_matches('/') };
    let beside = || PathBuf::from(format!("{beside}.key"));
    let path = config.env_key_file.clone().unwrap_or_else(beside);
    let key = EnvKey::load_or_create(&path)?;
    if is_shared {
        let (file, key) = (path.display(), key.id());
        tracing::info!(%file, key, "managers that share a store need the same tasks.env_key_file");
    }
    Ok(key)
}

/// Name of the executor of this process: `local`, or unique where managers share a store or a slot ledger.
fn local_name(config: &TasksConfig, port: u16) -> String {
    let shared = config.store.contains("://") || config.slot_ledger != "memory";
    if !shared {
        return "local".to_owned();
    }
    let plain = |c: char| if c.is_ascii_alphanumeric() || ".-_".contains(c) { c } else { '-' };
    let node: String = owner(config.node.as_deref(), port).chars().map(plain).collect();
    let end = node.len().saturating_sub(58);
    format!("{}.local", &node[end..])
}

fn settings(config: &TasksConfig, port: u16) -> ManagerSettings {
    let shared_store = config.store.contains("://");
    // Slots that other managers use too must be leased.
    let shared = config.slot_ledger != "memory" && config.placement == Placement::Pull;
    ManagerSettings {
        owner: owner(config.node.as_deref(), port),
        shared_store,
        // The other placements choose a task before they know of a slot.
        claims: shared_store && !shared && config.placement == Placement::Pull,
        placement: if shared { Placement::Semaphore } else { config.placement },
        lease: config.lease,
        tasks_max: config.tasks_max,
        memory_bytes: config.memory_bytes,
        limits: TaskLimits { code_bytes_max: config.code_bytes_max, ..TaskLimits::default() },
        retention: config.retention,
        output_bytes_max: config.output_bytes_max,
        ..ManagerSettings::default()
    }
}

/// Name of the manager. Managers that share a store must have different names; a restarted manager adopts the
/// tasks of its name at once.
fn owner(node: Option<&str>, port: u16) -> String {
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let machine = if machine.trim().is_empty() { "localhost" } else { machine.trim() };
    node.map_or_else(|| format!("{machine}:{port}"), str::to_owned)
}
