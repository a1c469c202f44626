#[cfg(feature = "fjall")]
use super::FjallTaskStore;
#[cfg(feature = "postgres")]
use super::PostgresTaskStore;
use super::{
    Change, ChangeOutcome, Claim, Claimed, Durability, NewTask, QueueDepth, StoreHint, Submission,
    TaskPage, TaskQuery, TaskRecord, TaskStore,
};
use crate::storage::{NotAStoreUrl, StoreError, StoreUrl};
use std::time::Duration;
use tidegate_core::task::{OutputChunk, TaskId};

/// The task store that an address names.
#[derive(Debug)]
#[non_exhaustive]
pub enum AnyTaskStore {
    /// A folder of this machine.
    #[cfg(feature = "fjall")]
    Fjall(FjallTaskStore),
    /// A PostgreSQL database.
    #[cfg(feature = "postgres")]
    Postgres(Box<PostgresTaskStore>),
}

/// Calls the same of whichever store it is.
macro_rules! delegate {
    ($self:ident, $store:ident => $call:expr) => {
        match *$self {
            #[cfg(feature = "fjall")]
            AnyTaskStore::Fjall(ref $store) => $call,
            #[cfg(feature = "postgres")]
            AnyTaskStore::Postgres(ref $store) => $call,
        }
    };
}

// === impl AnyTaskStore ===

impl AnyTaskStore {
    /// Opens a folder, or connects to `postgres://user:password@host/database`; makes what is not there yet.
    ///
    /// # Errors
    ///
    /// [`Unusable`](StoreError::Unusable) when the address is not that of a store or the store belongs to another
    /// program, [`Unavailable`](StoreError::Unavailable) when it may work later.
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        let url: StoreUrl =
            url.parse().map_err(|error: NotAStoreUrl| StoreError::Unusable(error.to_string()))?;
        match url {
            #[cfg(feature = "fjall")]
            StoreUrl::Folder(folder) => Ok(Self::Fjall(FjallTaskStore::open(folder).await?)),
            #[cfg(feature = "postgres")]
            StoreUrl::Postgres(url) => {
                Ok(Self::Postgres(Box::new(PostgresTaskStore::connect(&url).await?)))
            }
            #[cfg(not(all(feature = "fjall", feature = "postgres")))]
            other => Err(StoreError::Unusable(format!(
                "this program was built without the store that {other} needs"
            ))),
        }
    }

    /// Finishes what is under way and lets go of the store.
    pub async fn close(self) {
        match self {
            #[cfg(feature = "fjall")]
            Self::Fjall(store) => store.close().await,
            #[cfg(feature = "postgres")]
            Self::Postgres(store) => store.close().await,
        }
    }
}

impl TaskStore for AnyTaskStore {
    async fn submit(&self, task: NewTask) -> Result<Submission, StoreError> {
        delegate!(self, store => store.submit(task).await)
    }

    async fn persist(
        &self,
        change: Change,
        durability: Durability,
    ) -> Result<ChangeOutcome, StoreError> {
        delegate!(self, store => store.persist(change, durability).await)
    }

    async fn get(&self, id: &TaskId) -> Result<Option<TaskRecord>, StoreError> {
        delegate!(self, store => store.get(id).await)
    }

    async fn output(&self, id: &TaskId) -> Result<Option<Vec<OutputChunk>>, StoreError> {
        delegate!(self, store => store.output(id).await)
    }

    async fn list(&self, query: &TaskQuery) -> Result<TaskPage, StoreError> {
        delegate!(self, store => store.list(query).await)
    }

    async fn counts(&self) -> Result<[u64; 6], StoreError> {
        delegate!(self, store => store.counts().await)
    }

    async fn beat(&self, owner: &str, ttl: Duration) -> Result<(), StoreError> {
        delegate!(self, store => store.beat(owner, ttl).await)
    }

    async fn adopt(
        &self,
        owner: &str,
        limit: usize,
        others: bool,
    ) -> Result<Vec<TaskRecord>, StoreError> {
        delegate!(self, store => store.adopt(owner, limit, others).await)
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed, StoreError> {
        delegate!(self, store => store.claim(claim).await)
    }

    async fn adopt_queued(&self, owner: &str, limit: usize) -> Result<Vec<TaskRecord>, StoreError> {
        delegate!(self, store => store.adopt_queued(owner, limit).await)
    }

    async fn hand_over(&self, owner: &str, executors: &[String]) -> Result<u64, StoreError> {
        delegate!(self, store => store.hand_over(owner, executors).await)
    }

    async fn take_over(
        &self,
        owner: &str,
        executors: &[String],
        limit: usize,
    ) -> Result<Vec<TaskRecord>, StoreError> {
        delegate!(self, store => store.take_over(owner, executors, limit).await)
    }

    async fn hint(&self) -> StoreHint {
        delegate!(self, store => store.hint().await)
    }

    async fn queue_position(&self, id: &TaskId, ahead_max: u64) -> Result<Option<u64>, StoreError> {
        delegate!(self, store => store.queue_position(id, ahead_max).await)
    }

    async fn queue_depth(&self, count_max: u64) -> Result<QueueDepth, StoreError> {
        delegate!(self, store => store.queue_depth(count_max).await)
    }

    async fn forget(&self, ended_before_ms: u64, limit: usize) -> Result<u64, StoreError> {
        delegate!(self, store => store.forget(ended_before_ms, limit).await)
    }
}
