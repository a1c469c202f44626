use crate::folder::TempFolder;
use crate::shaky::Shaky;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tidegate::MessagePriority;
use tidegate::ledger::MemoryLedger;
use tidegate::task::{TaskId, TaskSpec};
use tidegate::tasks::FjallTaskStore;
use tidegate_server::manager::{Manager, ManagerTerms, Place, Submit, TaskDesk, TaskView};
use tidegate_server::worker::{Executor, ExecutorConfig, MockRunner, Runner};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};

/// Only ends a test that has failed; none is judged by it.
const LONGEST: Duration = Duration::from_secs(60);

/// A manager with an executor of its own, on a store that can be made to fail.
pub struct Node {
    pub desk: TaskDesk,
    pub store: Arc<Shaky>,
    pub executor: Executor,
    manager: Manager,
    runtime: Runtime,
}

// === impl Node ===

impl Node {
    /// One whose executor has so many slots, and runs `sh`.
    pub fn start(folder: &TempFolder, slots: u32, terms: ManagerTerms) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let runner = Runner::Mock(MockRunner::new(Duration::ZERO, vec!["sh".to_owned()]));
        let config = ExecutorConfig::new("here", slots);
        let executor = Executor::start(config, runner, runtime.handle().clone());
        let drives = Builder::new_current_thread().enable_all().build().unwrap();
        let store = drives.block_on(FjallTaskStore::open(folder.path().join("tasks"))).unwrap();
        let store = Arc::new(Shaky::new(store));
        let places = [Place::Here(executor.clone())];
        let ledger = Arc::new(MemoryLedger::new());
        let grace = Duration::from_secs(30);
        let manager =
            Manager::start(terms, &places, Arc::clone(&store), ledger, drives, grace).unwrap();
        let node = Self { desk: manager.desk().clone(), store, executor, manager, runtime };
        node.run(async {
            while !node.desk.executors().await.unwrap().executors.iter().all(|it| it.up) {
                sleep(Duration::from_millis(5)).await;
            }
        });
        node
    }

    /// Drives a test, for a bounded time.
    pub fn run<T>(&self, test: impl Future<Output = T>) -> T {
        self.runtime.block_on(async { timeout(LONGEST, test).await.unwrap() })
    }

    /// Lets what runs finish, and leaves the rest in the store.
    pub fn shutdown(self) {
        self.manager.shutdown();
    }

    /// Hands a task in that has to be new.
    pub async fn submit(&self, name: &str, code: &str) -> TaskId {
        self.submit_as(name, spec(code)).await
    }

    pub async fn submit_as(&self, name: &str, spec: TaskSpec) -> TaskId {
        let (view, new) = self.desk.submit(named(name, spec)).await.unwrap();
        assert!(new, "{view:?}");
        view.id
    }

    /// Waits until a task is as wanted.
    pub async fn until(&self, id: &TaskId, wanted: impl Fn(&TaskView) -> bool) -> TaskView {
        loop {
            match self.desk.task(id).await {
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
    Submit { id: Some(TaskId::new(name).unwrap()), key: None, spec }
}
