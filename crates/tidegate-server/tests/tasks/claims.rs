//! Managers that claim tasks of nobody, on a PostgreSQL whose answers fail or come late.

use crate::failing_store::FailingStore;
use crate::node::{named, spec};
use crate::support::postgres::Postgres;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tidegate::ledger::MemoryLedger;
use tidegate::task::{TaskId, TaskStatus};
use tidegate::tasks::{PostgresTaskStore, TaskRecord, TaskStore};
use tidegate_server::tasks::executor::{Executor, ExecutorConfig, MockRunner, Runner};
use tidegate_server::tasks::manager::{
    ExecutorTarget, Manager, ManagerExecutors, ManagerSettings, TaskError, TaskView,
};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};

/// Longest run of a test; only a failed one reaches it.
const LONGEST: Duration = Duration::from_secs(60);

/// A manager that claims, with a mock executor.
struct Claimer {
    manager: Manager,
    store: Arc<FailingStore<PostgresTaskStore>>,
    executor: Executor,
    runtime: Runtime,
}

// === impl Claimer ===

impl Claimer {
    fn start(url: &str, name: &str, slots: u32) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let runner = Runner::Mock(MockRunner::new(Duration::ZERO, vec!["sh".to_owned()]));
        let config = ExecutorConfig::new(format!("{name}.local"), slots);
        let executor = Executor::start(config, runner, runtime.handle().clone());
        let manager_runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let store = manager_runtime.block_on(PostgresTaskStore::connect(url)).unwrap();
        let store = Arc::new(FailingStore::new(store));
        let targets = vec![ExecutorTarget::Local(executor.clone())];
        let executors = ManagerExecutors { targets, workers: None };
        let settings = ManagerSettings {
            owner: name.to_owned(),
            shared_store: true,
            claims: true,
            ..ManagerSettings::default()
        };
        let (ledger, grace) = (Arc::new(MemoryLedger::new()), Duration::from_secs(30));
        let manager =
            Manager::start(settings, executors, store.clone(), ledger, manager_runtime, grace);
        Self { manager: manager.unwrap(), store, executor, runtime }
    }

    /// Runs a test, for a bounded time.
    fn run<T>(&self, test: impl Future<Output = T>) -> T {
        self.runtime.block_on(async { timeout(LONGEST, test).await.unwrap() })
    }

    async fn submit(&self, id: &TaskId) {
        let handle = self.manager.handle();
        while handle.submit(named(id.as_str(), spec("print x"))).await.is_err() {
            sleep(Duration::from_millis(5)).await;
        }
    }

    async fn until_over(&self, id: &TaskId) -> TaskView {
        loop {
            match self.manager.handle().task(id).await {
                Ok(view) if view.status.is_over() => return view,
                _ => sleep(Duration::from_millis(5)).await,
            }
        }
    }

    async fn stored(&self, id: &TaskId) -> TaskRecord {
        self.store.get(id).await.unwrap().unwrap()
    }
}

fn id(name: &str) -> TaskId {
    TaskId::new(name).unwrap()
}

#[test]
fn a_claim_that_is_answered_during_a_shutdown_is_given_back() {
    let server = Postgres::shared();
    let url = server.url("schema=claimed_late");
    let (one, other) = (Claimer::start(&url, "one", 1), Claimer::start(&url, "other", 0));
    let task = id("t");
    one.run(async {
        one.store.hold_claims(true);
        other.submit(&task).await;
        while &*one.stored(&task).await.state.owner != "one" {
            sleep(Duration::from_millis(5)).await;
        }
    });
    let (store, executor) = (Arc::clone(&one.store), one.executor.clone());
    let handle = one.manager.handle().clone();
    let late = || handle.submit(named("t", spec("print x")));
    // Must not take the claim that is on its way for one of an earlier process.
    assert!(matches!(other.run(late()), Ok((_, false))));
    let stopping = std::thread::spawn(move || one.manager.shutdown());
    while other.run(late()) != Err(TaskError::Draining) {}
    store.hold_claims(false);
    stopping.join().unwrap();
    let left = other.run(other.stored(&task)).state;
    assert_eq!(
        (left.status, &*left.owner, left.attempt, left.skipped),
        (TaskStatus::Queued, "", 1, 1)
    );
    assert_eq!((left.losses, executor.counts().started), (0, 0), "{left:?}");
    let next = Claimer::start(&url, "next", 1);
    let view = next.run(next.until_over(&task));
    assert_eq!((view.status, view.attempts(), view.losses), (TaskStatus::Succeeded, 1, 0));
}

/// Including claims that were made although they seemed to fail.
#[test]
fn a_store_that_fails_every_other_time_loses_no_claim() {
    let server = Postgres::shared();
    let node = Claimer::start(&server.url("schema=claimed_twice"), "m", 3);
    node.store.set_failing(true);
    let ids: Vec<_> = (0..40).map(|nth| id(&format!("t-{nth}"))).collect();
    node.run(async {
        for id in &ids {
            node.submit(id).await;
        }
        for id in &ids {
            assert_eq!(node.until_over(id).await.status, TaskStatus::Succeeded);
        }
        node.store.set_failing(false);
        for id in &ids {
            let view = node.until_over(id).await;
            assert_eq!((view.failures, view.losses), (0, 0), "{view:?}");
        }
        assert_eq!(node.executor.counts().started, 40, "each once");
        assert_eq!(node.executor.capacity().running, 0);
    });
}
