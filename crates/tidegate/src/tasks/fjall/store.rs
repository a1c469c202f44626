use super::row::{NewRow, StepRow};
use super::writer::{Request, TaskWriter, Write};
use super::{list, read};
use crate::storage::StoreError;
use crate::storage::fjall::WriterThread;
use crate::tasks::bounds::{check_change, check_new, check_owned, check_owner};
use crate::tasks::{
    Change, ChangeOutcome, Claim, Claimed, Durability, NewTask, QueueDepth, StoreHint, Submission,
    TaskPage, TaskQuery, TaskRecord, TaskStore,
};
use std::path::Path;
use std::time::Duration;
use tidegate_core::task::{OutputChunk, TaskId};

/// Tasks in a folder of this machine.
///
/// One thread writes; submissions and changes that wait are decided and committed together, with one sync of the
/// journal (`fdatasync`) for all that must survive a power cut. What must survive only the process is answered
/// before that. Readers don't wait for it. After a failed write, such as on a full disk, the folder is opened
/// again by the next change; no restart is needed.
///
/// The folder has one owner at a time, so [`adopt`](TaskStore::adopt) gives every task that was not over when it
/// was opened, whoever's it was, and [`beat`](TaskStore::beat) has nothing to do.
#[derive(Debug)]
pub struct FjallTaskStore {
    writer: WriterThread<TaskWriter>,
}

// === impl FjallTaskStore ===

impl FjallTaskStore {
    /// Opens a folder, which is made when it is not there. Only one process at a time can have it open.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](StoreError::Unavailable) when another process has it open or the disk fails,
    /// [`Unusable`](StoreError::Unusable) when it holds something else, another version, or is damaged.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub async fn open(folder: impl AsRef<Path>) -> Result<Self, StoreError> {
        Ok(Self { writer: WriterThread::open(folder.as_ref()).await? })
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.writer.folder()
    }

    /// Finishes pending writes and releases the folder. Dropping the store does the same, a little later.
    pub async fn close(self) {
        self.writer.close().await;
    }
}

impl TaskStore for FjallTaskStore {
    async fn submit(&self, task: NewTask) -> Result<Submission, StoreError> {
        check_new(&task)?;
        check_owned(&task.record.id, &task.record.state)?;
        let new = Box::new(NewRow::new(task)?);
        self.writer.ask(|reply| Request::Write(Write::Submit(new, reply))).await
    }

    async fn persist(
        &self,
        change: Change,
        durability: Durability,
    ) -> Result<ChangeOutcome, StoreError> {
        check_change(&change)?;
        check_owned(&change.id, &change.state)?;
        let step = Box::new(StepRow::new(&change)?);
        self.writer.ask(|reply| Request::Write(Write::Persist(step, durability, reply))).await
    }

    async fn get(&self, id: &TaskId) -> Result<Option<TaskRecord>, StoreError> {
        let id = id.clone();
        self.writer.read(move |view| read::get(&*view.read().engine()?, &id)).await
    }

    async fn output(&self, id: &TaskId) -> Result<Option<Vec<OutputChunk>>, StoreError> {
        let id = id.clone();
        self.writer.read(move |view| read::output(&*view.read().engine()?, &id)).await
    }

    async fn list(&self, query: &TaskQuery) -> Result<TaskPage, StoreError> {
        let query = query.clone();
        self.writer
            .read(move |view| {
                let (engine, counts) = {
                    let inside = view.read();
                    (inside.engine()?, inside.summary)
                };
                match query.status {
                    // Those that are not over stand together: without this, all are looked at to find none.
                    Some(status) if counts[status as usize] == 0 => Ok(TaskPage::default()),
                    _ => list::list(&engine, &query),
                }
            })
            .await
    }

    async fn counts(&self) -> Result<[u64; 6], StoreError> {
        let inside = self.writer.view().read();
        inside.engine().map(|_| inside.summary)
    }

    async fn beat(&self, owner: &str, _: Duration) -> Result<(), StoreError> {
        check_owner(owner)
    }

    async fn adopt(
        &self,
        owner: &str,
        limit: usize,
        _: bool,
    ) -> Result<Vec<TaskRecord>, StoreError> {
        check_owner(owner)?;
        let owner = owner.into();
        self.writer.ask(|reply| Request::Adopt { owner, limit, reply }).await
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed, StoreError> {
        check_owner(&claim.owner)?;
        Ok(Claimed::default())
    }

    async fn adopt_queued(&self, owner: &str, _: usize) -> Result<Vec<TaskRecord>, StoreError> {
        check_owner(owner)?;
        Ok(Vec::new())
    }

    async fn hand_over(&self, owner: &str, _: &[String]) -> Result<u64, StoreError> {
        check_owner(owner)?;
        Ok(0)
    }

    async fn take_over(
        &self,
        owner: &str,
        _: &[String],
        _: usize,
    ) -> Result<Vec<TaskRecord>, StoreError> {
        check_owner(owner)?;
        Ok(Vec::new())
    }

    async fn hint(&self) -> StoreHint {
        std::future::pending().await
    }

    async fn queue_position(&self, _: &TaskId, _: u64) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    async fn queue_depth(&self, _: u64) -> Result<QueueDepth, StoreError> {
        Ok(QueueDepth::default())
    }

    async fn forget(&self, ended_before_ms: u64, limit: usize) -> Result<u64, StoreError> {
        self.writer.ask(|reply| Request::Forget { ended_before_ms, limit, reply }).await
    }
}
