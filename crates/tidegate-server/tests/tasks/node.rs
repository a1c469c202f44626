use crate::failing_store::FailingStore;
use crate::folder::TempFolder;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tidegate::MessagePriority;
use tidegate::ledger::MemoryLedger;
use tidegate::task::{TaskId, TaskSpec};
use tidegate::tasks::FjallTaskStore;
use tidegate_server::tasks::executor::{Executor, ExecutorConfig, MockRunner, Runner};
use tidegate_server::tasks::manager::{
    ExecutorTarget, Manager, ManagerExecutors, ManagerHandle, ManagerSettings, Submit, TaskView,
};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};

/// Longest run of a test; only a failed one reaches it.
const LONGEST: Duration = Duration::from_secs(60);

/// A manager with a mock executor, on a store that can fail.
pub struct Node {
    pub handle: ManagerHandle,
    pub store: Arc<FailingStore>,
    pub executor: Executor,
    manager: Manager,
    runtime: Runtime,
}

// === impl Node ===

impl Node {
    /// A node whose executor has so many slots, and the runtime `sh`.
    pub fn start(folder: &TempFolder, slots: u32, settings: ManagerSettings) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let runner = Runner::Mock(MockRunner::new(Duration::ZERO, vec!["sh".to_owned()]));
        let config = ExecutorConfig::new("local", slots);
        let executor = Executor::start(config, runner, runtime.handle().clone());
        let manager_runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let store =
            manager_runtime.block_on(FjallTaskStore::open(folder.path().join("tasks"))).unwrap();
        let store = Arc::new(FailingStore::new(store));
        let targets = vec![ExecutorTarget::Local(executor.clone())];
        let executors = ManagerExecutors { targets, workers: None };
        let ledger = Arc::new(MemoryLedger::new());
        let grace = Duration::from_secs(30);
        let manager =
            Manager::start(settings, executors, Arc::clone(&store), ledger, manager_runtime, grace)
                .unwrap();
        let node = Self { handle: manager.handle().clone(), store, executor, manager, runtime };
        node.run(async {
            while !node
                .handle
                .executors()
                .await
                .unwrap()
                .executors
                .iter()
                .all(|executor| executor.up)
            {
                sleep(Duration::from_millis(5)).await;
            }
        });
        node
    }

    /// Runs a test, for a bounded time.
    pub fn run<T>(&self, test: impl Future<Output = T>) -> T {
        self.runtime.block_on(async { timeout(LONGEST, test).await.unwrap() })
    }

    /// Lets running tasks finish, and leaves the rest in the store.
    pub fn shutdown(self) {
        self.manager.shutdown();
    }

    /// Submits a task that must be new.
    pub async fn submit(&self, name: &str, code: &str) -> TaskId {
        self.submit_as(name, spec(code)).await
    }

    pub async fn submit_as(&self, name: &str, spec: TaskSpec) -> TaskId {
        let (view, new) = self.handle.submit(named(name, spec)).await.unwrap();
        assert!(new, "{view:?}");
        view.id
    }

    /// Waits until a task satisfies a condition.
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
}

pub fn spec(code: &str) -> TaskSpec {
    TaskSpec {
        runtime: "sh".to_owned(),
        code: code.to_owned(),
        args: Vec::new(),
        env: BTreeMap::new(),
        priority: MessagePriority::Normal,
        timeout_ms: 60_000,
        retries: 0,
    }
}

pub fn named(name: &str, spec: TaskSpec) -> Submit {
    Submit { id: Some(TaskId::new(name).unwrap()), key: None, client: None, spec }
}
