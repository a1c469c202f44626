use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tidegate::store::StoreError;
use tidegate::task::{OutputChunk, TaskId};
use tidegate::tasks::{
    Change, ChangeOutcome, Claim, Claimed, Durability, FjallTaskStore, NewTask, QueueDepth,
    StoreHint, Submission, TaskPage, TaskQuery, TaskRecord, TaskStore,
};
use tokio::sync::watch;

/// A store that fails every other call while enabled: in turn before and after the call took effect.
pub struct FailingStore<S = FjallTaskStore> {
    store: S,
    /// Answers to claims that have tasks are kept back.
    holding: watch::Sender<bool>,
    failing: AtomicBool,
    calls: AtomicU64,
    /// Counted apart, so that some submissions fail whatever the other calls.
    submissions: AtomicU64,
}

// === impl FailingStore ===

impl<S> FailingStore<S> {
    pub fn new(store: S) -> Self {
        Self {
            store,
            holding: watch::Sender::new(false),
            failing: AtomicBool::new(false),
            calls: AtomicU64::new(0),
            submissions: AtomicU64::new(0),
        }
    }

    pub fn set_failing(&self, failing: bool) {
        self.failing.store(failing, Ordering::Relaxed);
    }

    /// Keeps back the answers to claims, or lets them go.
    pub fn hold_claims(&self, holding: bool) {
        self.holding.send_replace(holding);
    }

    async fn call<T>(
        &self,
        operation: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.count(&self.calls, operation).await
    }

    async fn count<T>(
        &self,
        calls: &AtomicU64,
        operation: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let failure = || Err(StoreError::Unavailable("the test store fails".to_owned()));
        if !self.failing.load(Ordering::Relaxed) {
            return operation.await;
        }
        match calls.fetch_add(1, Ordering::Relaxed) % 4 {
            0 => failure(),
            2 => operation.await.and_then(|_| failure()),
            _ => operation.await,
        }
    }
}

impl<S: TaskStore> TaskStore for FailingStore<S> {
    async fn submit(&self, task: NewTask) -> Result<Submission, StoreError> {
        self.count(&self.submissions, self.store.submit(task)).await
    }

    async fn persist(
        &self,
        change: Change,
        durability: Durability,
    ) -> Result<ChangeOutcome, StoreError> {
        self.call(self.store.persist(change, durability)).await
    }

    async fn get(&self, id: &TaskId) -> Result<Option<TaskRecord>, StoreError> {
        self.call(self.store.get(id)).await
    }

    async fn output(&self, id: &TaskId) -> Result<Option<Vec<OutputChunk>>, StoreError> {
        self.call(self.store.output(id)).await
    }

    async fn list(&self, query: &TaskQuery) -> Result<TaskPage, StoreError> {
        self.call(self.store.list(query)).await
    }

    async fn counts(&self) -> Result<[u64; 6], StoreError> {
        self.call(self.store.counts()).await
    }

    async fn beat(&self, owner: &str, ttl: Duration) -> Result<(), StoreError> {
        self.call(self.store.beat(owner, ttl)).await
    }

    async fn adopt(
        &self,
        owner: &str,
        limit: usize,
        others: bool,
    ) -> Result<Vec<TaskRecord>, StoreError> {
        self.call(self.store.adopt(owner, limit, others)).await
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed, StoreError> {
        let claimed = self.call(self.store.claim(claim)).await;
        if claimed.as_ref().is_ok_and(|claimed| !claimed.tasks.is_empty()) {
            let _ = self.holding.subscribe().wait_for(|holding| !holding).await;
        }
        claimed
    }

    async fn adopt_queued(&self, owner: &str, limit: usize) -> Result<Vec<TaskRecord>, StoreError> {
        self.call(self.store.adopt_queued(owner, limit)).await
    }

    async fn hand_over(&self, owner: &str, executors: &[String]) -> Result<u64, StoreError> {
        self.call(self.store.hand_over(owner, executors)).await
    }

    async fn take_over(
        &self,
        owner: &str,
        executors: &[String],
        limit: usize,
    ) -> Result<Vec<TaskRecord>, StoreError> {
        self.call(self.store.take_over(owner, executors, limit)).await
    }

    async fn hint(&self) -> StoreHint {
        self.store.hint().await
    }

    async fn queue_position(&self, id: &TaskId, ahead_max: u64) -> Result<Option<u64>, StoreError> {
        self.call(self.store.queue_position(id, ahead_max)).await
    }

    async fn queue_depth(&self, count_max: u64) -> Result<QueueDepth, StoreError> {
        self.call(self.store.queue_depth(count_max)).await
    }

    async fn forget(&self, ended_before_ms: u64, limit: usize) -> Result<u64, StoreError> {
        self.call(self.store.forget(ended_before_ms, limit)).await
    }
}
