use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tidegate::store::StoreError;
use tidegate::task::{OutputChunk, TaskId};
use tidegate::tasks::{
    Change, Durability, FjallTaskStore, Kept, NewTask, Submission, TaskPage, TaskQuery, TaskRecord,
    TaskStore,
};

/// A store that fails every other time when it is told to: first before it has done what was asked, then after.
pub struct Shaky {
    store: FjallTaskStore,
    shakes: AtomicBool,
    asked: AtomicU64,
    /// Counted apart: whatever else is asked in between, some of these fail.
    submitted: AtomicU64,
}

// === impl Shaky ===

impl Shaky {
    pub fn new(store: FjallTaskStore) -> Self {
        Self {
            store,
            shakes: AtomicBool::new(false),
            asked: AtomicU64::new(0),
            submitted: AtomicU64::new(0),
        }
    }

    pub fn shake(&self, shakes: bool) {
        self.shakes.store(shakes, Ordering::Relaxed);
    }

    async fn perhaps<T>(
        &self,
        done: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.counted(&self.asked, done).await
    }

    async fn counted<T>(
        &self,
        asked: &AtomicU64,
        done: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let trouble = || Err(StoreError::Unavailable("it was told to fail".to_owned()));
        if !self.shakes.load(Ordering::Relaxed) {
            return done.await;
        }
        match asked.fetch_add(1, Ordering::Relaxed) % 4 {
            0 => trouble(),
            2 => done.await.and_then(|_| trouble()),
            _ => done.await,
        }
    }
}

impl TaskStore for Shaky {
    async fn submit(&self, task: NewTask) -> Result<Submission, StoreError> {
        self.counted(&self.submitted, self.store.submit(task)).await
    }

    async fn keep(&self, change: Change, durability: Durability) -> Result<Kept, StoreError> {
        self.perhaps(self.store.keep(change, durability)).await
    }

    async fn get(&self, id: &TaskId) -> Result<Option<TaskRecord>, StoreError> {
        self.perhaps(self.store.get(id)).await
    }

    async fn output(&self, id: &TaskId) -> Result<Option<Vec<OutputChunk>>, StoreError> {
        self.perhaps(self.store.output(id)).await
    }

    async fn list(&self, query: &TaskQuery) -> Result<TaskPage, StoreError> {
        self.perhaps(self.store.list(query)).await
    }

    async fn counts(&self) -> Result<[u64; 6], StoreError> {
        self.perhaps(self.store.counts()).await
    }

    async fn beat(&self, owner: &str, ttl: Duration) -> Result<(), StoreError> {
        self.perhaps(self.store.beat(owner, ttl)).await
    }

    async fn adopt(&self, owner: &str, limit: usize) -> Result<Vec<TaskRecord>, StoreError> {
        self.perhaps(self.store.adopt(owner, limit)).await
    }

    async fn forget(&self, ended_before_ms: u64, limit: usize) -> Result<u64, StoreError> {
        self.perhaps(self.store.forget(ended_before_ms, limit)).await
    }
}
