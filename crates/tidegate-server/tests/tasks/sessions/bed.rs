use crate::folder::TempFolder;
use crate::node::{named, spec};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tidegate::ledger::{Ledger, MemoryLedger};
use tidegate::task::{TaskId, TaskSpec};
use tidegate::tasks::FjallTaskStore;
use tidegate_server::tasks::executor::{ExecutorConfig, MockRunner, Runner};
use tidegate_server::tasks::manager::{
    HubSettings, Manager, ManagerExecutors, ManagerHandle, ManagerSettings, SessionPort, TaskView,
    WorkerHub, WorkerView,
};
use tidegate_server::tasks::worker::{ManagerTarget, SessionWorker, WorkerSettings};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};

/// Longest run of a test; only a failed one reaches it.
const LONGEST: Duration = Duration::from_secs(60);

/// A manager with a port for workers.
pub struct Bed {
    pub handle: ManagerHandle,
    pub address: SocketAddr,
    manager: Manager,
    runtime: Runtime,
}

/// Settings of a test's manager.
pub struct BedSettings {
    pub address: SocketAddr,
    pub lease: Duration,
    pub updates_max: u64,
    pub token: Option<&'static str>,
}

impl Default for BedSettings {
    fn default() -> Self {
        Self {
            address: "127.0.0.1:0".parse().unwrap(),
            lease: Duration::from_secs(15),
            updates_max: 16_384,
            token: None,
        }
    }
}

// === impl Bed ===

impl Bed {
    pub fn start(folder: &TempFolder, settings: BedSettings) -> Self {
        let manager = ManagerSettings { lease: settings.lease, ..ManagerSettings::default() };
        Self::start_with(folder, settings, manager, Arc::new(MemoryLedger::new()))
    }

    /// A manager with these settings and this slot ledger.
    pub fn start_with<L: Ledger>(
        folder: &TempFolder,
        settings: BedSettings,
        manager_settings: ManagerSettings,
        ledger: Arc<L>,
    ) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let manager_runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let path = folder.path().join("tasks");
        // An earlier manager that was dropped may still end.
        let store = retried(|| manager_runtime.block_on(FjallTaskStore::open(path.clone())));
        let port = retried(|| SessionPort::bind(settings.address, None));
        let address = port.address();
        let tokens =
            settings.token.map(|token| tidegate_server::config::TokenDigest::of(token.as_bytes()));
        let hub = HubSettings {
            manager: "m1".to_owned(),
            lease: settings.lease,
            tokens: tokens.into_iter().collect(),
            reserved_names: ["local".to_owned()].into(),
            updates_max: settings.updates_max,
        };
        let executors = ManagerExecutors { targets: Vec::new(), workers: Some((port, hub)) };
        let grace = Duration::from_secs(30);
        let manager = Manager::start(
            manager_settings,
            executors,
            Arc::new(store),
            ledger,
            manager_runtime,
            grace,
        )
        .unwrap();
        Self { handle: manager.handle().clone(), address, manager, runtime }
    }

    /// Runs a test, for a bounded time.
    pub fn run<T>(&self, test: impl Future<Output = T>) -> T {
        self.runtime.block_on(async { timeout(LONGEST, test).await.expect("in time") })
    }

    /// Runs a test that takes so long by itself.
    pub fn run_for<T>(&self, time: Duration, test: impl Future<Output = T>) -> T {
        self.runtime.block_on(async { timeout(time + LONGEST, test).await.expect("in time") })
    }

    pub fn hub(&self) -> &Arc<WorkerHub> {
        self.manager.workers().unwrap()
    }

    pub fn shutdown(self) {
        self.manager.shutdown();
    }

    /// A worker as the manager shows it.
    pub fn worker(&self, name: &str) -> Option<WorkerView> {
        self.hub().list().workers.into_iter().find(|worker| worker.name == name)
    }

    /// Waits until the manager knows a worker's slots.
    pub async fn until_up(&self, name: &str) {
        loop {
            let list = self.handle.executors().await.unwrap();
            if list.executors.iter().any(|executor| executor.name == name && executor.up) {
                return;
            }
            sleep(Duration::from_millis(5)).await;
        }
    }

    pub async fn submit(&self, name: &str, code: &str) -> TaskId {
        self.submit_as(name, spec(code)).await
    }

    pub async fn submit_as(&self, name: &str, spec: TaskSpec) -> TaskId {
        let (view, new) = self.handle.submit(named(name, spec)).await.unwrap();
        assert!(new, "{view:?}");
        view.id
    }

    pub async fn until(&self, id: &TaskId, wanted: impl Fn(&TaskView) -> bool) -> TaskView {
        loop {
            match self.handle.task(id).await {
                Ok(view) if wanted(&view) => return view,
                _ => sleep(Duration::from_millis(5)).await,
            }
        }
    }

    pub async fn until_over(&self, id: &TaskId) -> TaskView {
        self.until(id, |view| view.status.is_over()).await
    }

    /// Output of a task that is over.
    pub async fn text(&self, id: &TaskId) -> String {
        let output = self.handle.output(id).await.unwrap();
        output.iter().map(|chunk| chunk.text.as_str()).collect()
    }
}

/// Tries until it succeeds, for a bounded time.
fn retried<T, E: std::fmt::Display>(mut attempt: impl FnMut() -> Result<T, E>) -> T {
    let until = std::time::Instant::now() + LONGEST;
    loop {
        match attempt() {
            Ok(done) => return done,
            Err(error) => assert!(std::time::Instant::now() < until, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Runs a test without a manager, for a bounded time.
pub fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { timeout(LONGEST, test).await.expect("in time") })
}

/// Waits until a condition holds.
pub async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        sleep(Duration::from_millis(2)).await;
    }
}

/// Code that raises the counter `n` by 1 every so often, and so many times.
pub fn ticking(count: u32, every_ms: u32) -> String {
    let tick = |n| format!("progress {{\"counters\": {{\"n\": {n}}}}}\nsleep {every_ms}ms\n");
    (1..=count).map(tick).collect()
}

/// A worker with mock executions that dials an address.
pub fn worker(name: &str, slots: u32, manager: SocketAddr) -> SessionWorker {
    worker_with(name, slots, manager, None)
}

pub fn worker_with(
    name: &str,
    slots: u32,
    manager: SocketAddr,
    token: Option<&str>,
) -> SessionWorker {
    let settings = WorkerSettings {
        manager: manager.to_string().parse::<ManagerTarget>().unwrap(),
        token: token.map(str::to_owned),
        executor: ExecutorConfig::new(name, slots),
    };
    let runner = Runner::Mock(MockRunner::new(Duration::ZERO, vec!["sh".to_owned()]));
    SessionWorker::start(settings, runner).unwrap()
}
