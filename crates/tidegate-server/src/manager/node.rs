use super::TaskDesk;
use super::here::{Here, HereError};
use super::meters::ManagerMeters;
use super::start::{Manager, Place};
use super::terms::ManagerTerms;
use crate::config::TasksConfig;
use crate::worker::CapacityReport;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tidegate::capacity::Placement;
use tidegate::ledger::{AnyLedger, LedgerError};
use tidegate::store::StoreError;
use tidegate::task::TaskLimits;
use tidegate::tasks::AnyTaskStore;
use tokio::runtime::Builder;

/// A manager of tasks with its store, its ledger and, where it has slots of its own, its executor.
pub struct TaskNode {
    manager: Manager,
    here: Option<Here>,
    grace: Duration,
}

/// Tasks can't be taken. Nothing is left running.
#[derive(Debug, thiserror::Error)]
pub enum TaskNodeError {
    /// The store can't be opened.
    #[error("{0}; choose another with --task-store, or take no tasks with --tasks false")]
    Store(#[from] StoreError),
    /// The ledger can't be opened.
    #[error("{0}; choose another with --ledger")]
    Ledger(#[from] LedgerError),
    /// The executor of this process can't be started.
    #[error(transparent)]
    Executor(#[from] HereError),
    /// The system gave no thread or no runtime.
    #[error("the system refused a thread: {0}")]
    System(#[from] io::Error),
}

// === impl TaskNode ===

impl TaskNode {
    /// Opens the store and the ledger, and starts the executor of this process and the manager. `port` tells
    /// managers of one machine apart that share a store and have no names.
    ///
    /// # Errors
    ///
    /// When one of them can't be had. Nothing is left running.
    pub fn start(config: &TasksConfig, port: u16, grace: Duration) -> Result<Self, TaskNodeError> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (store, ledger) = runtime.block_on(async {
            let store = AnyTaskStore::open(&config.store).await?;
            let ledger = match config.ledger.as_str() {
                "memory" => AnyLedger::open("memory:").await?,
                url => AnyLedger::open(url).await?,
            };
            Ok::<_, TaskNodeError>((store, ledger))
        })?;
        let here = match config.local_slots() {
            0 => None,
            slots => Some(Here::start(config, slots, &here_name(config, port))?),
        };
        let mut places: Vec<Place> = config.executors.iter().cloned().map(Place::Url).collect();
        places.extend(here.as_ref().map(|here| Place::Here(here.executor().clone())));
        let terms = terms(config, port);
        let (store, ledger) = (Arc::new(store), Arc::new(ledger));
        let manager = Manager::start(terms, &places, store, ledger, runtime, grace)?;
        Ok(Self { manager, here, grace })
    }

    /// Where tasks are handed in and asked for.
    #[must_use]
    pub fn desk(&self) -> &TaskDesk {
        self.manager.desk()
    }

    /// What is counted.
    #[must_use]
    pub fn meters(&self) -> &Arc<ManagerMeters> {
        self.manager.meters()
    }

    /// The executor of this process, if it has one.
    #[must_use]
    pub fn capacity(&self) -> Option<CapacityReport> {
        self.here.as_ref().map(|here| here.executor().capacity())
    }

    /// Takes nothing more, lets finish what runs here within the grace, and keeps the rest for the next start.
    pub fn shutdown(self) {
        let began = std::time::Instant::now();
        self.manager.shutdown();
        if let Some(here) = self.here {
            here.shutdown(self.grace.saturating_sub(began.elapsed()));
        }
    }
}

/// Among managers that share anything, `local` would be everybody's name.
fn here_name(config: &TasksConfig, port: u16) -> String {
    let shared = config.store.contains("://") || config.ledger != "memory";
    if !shared {
        return "local".to_owned();
    }
    let plain = |c: char| if c.is_ascii_alphanumeric() || ".-_".contains(c) { c } else { '-' };
    let node: String = owner(config.node.as_deref(), port).chars().map(plain).collect();
    let end = node.len().saturating_sub(58);
    format!("{}.local", &node[end..])
}

fn terms(config: &TasksConfig, port: u16) -> ManagerTerms {
    // Slots that others count too have to be asked for, whatever the order of those who wait.
    let shared = config.ledger != "memory" && config.placement == Placement::Pull;
    ManagerTerms {
        owner: owner(config.node.as_deref(), port),
        shared_store: config.store.contains("://"),
        placement: if shared { Placement::Semaphore } else { config.placement },
        lease: config.lease,
        tasks_max: config.tasks_max,
        memory_bytes: config.memory_bytes,
        limits: TaskLimits { code_bytes_max: config.code_bytes_max, ..TaskLimits::default() },
        retention: config.retention,
        output_bytes_max: config.output_bytes_max,
        ..ManagerTerms::default()
    }
}

/// Two managers that share a store must not have the same name; what an earlier life of the same name has left is
/// taken over at once.
fn owner(node: Option<&str>, port: u16) -> String {
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let machine = if machine.trim().is_empty() { "localhost" } else { machine.trim() };
    node.map_or_else(|| format!("{machine}:{port}"), str::to_owned)
}
