use super::row::{NewRow, StepRow};
use super::writer::{Request, TaskView, Write, Writer};
use super::{list, read};
use crate::store::StoreError;
use crate::store::fjall::folder::{Folder, Kind, unavailable};
use crate::tasks::bounds::{check_change, check_new, check_owner};
use crate::tasks::{
    Change, Durability, Kept, NewTask, Submission, TaskPage, TaskQuery, TaskRecord, TaskStore,
};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tidegate_core::task::{OutputChunk, TaskId};
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;

/// What a folder of ours says that it is.
const KIND: Kind = Kind { title: "tidegate tasks", version: 1 };

/// How many changes may wait for the writer. More wait in the calls themselves.
const REQUESTS_WAITING: usize = 1_024;

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
    folder: PathBuf,
    view: Arc<TaskView>,
    requests: mpsc::Sender<Request>,
    thread: Mutex<Option<JoinHandle<()>>>,
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
        let folder = folder.as_ref().to_owned();
        let path = folder.clone();
        let open = move || Writer::open(Folder::take(&path, KIND)?);
        let writer = spawn_blocking(open).await.map_err(|_| failed(&folder))??;
        let (requests, waiting) = mpsc::channel(REQUESTS_WAITING);
        let view = writer.view();
        let thread = std::thread::Builder::new()
            .name("tidegate-tasks".into())
            .spawn(move || writer.serve(waiting))
            .map_err(|error| unavailable(&folder, &error))?;
        Ok(Self { folder, view, requests, thread: Mutex::new(Some(thread)) })
    }

    /// Where it is.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Finishes what is under way and lets go of the folder. Dropping the store does that too, a little later.
    pub async fn close(self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(self);
        if let Some(thread) = thread {
            // Its end is all that is waited for; what it was asked for has been answered.
            let _ = spawn_blocking(|| thread.join()).await;
        }
    }

    async fn ask<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Request,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(request(reply)).await.map_err(|_| failed(&self.folder))?;
        answer.await.map_err(|_| failed(&self.folder))?
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&TaskView) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let view = self.view.clone();
        spawn_blocking(move || read(&view)).await.map_err(|_| failed(&self.folder))?
    }
}

impl TaskStore for FjallTaskStore {
    async fn submit(&self, task: NewTask) -> Result<Submission, StoreError> {
        check_new(&task)?;
        let new = Box::new(NewRow::new(task)?);
        self.ask(|reply| Request::Write(Write::Submit(new, reply))).await
    }

    async fn keep(&self, change: Change, durability: Durability) -> Result<Kept, StoreError> {
        check_change(&change)?;
        let step = Box::new(StepRow::new(&change)?);
        self.ask(|reply| Request::Write(Write::Keep(step, durability, reply))).await
    }

    async fn get(&self, id: &TaskId) -> Result<Option<TaskRecord>, StoreError> {
        let id = id.clone();
        self.read(move |view| read::get(&*view.read().engine()?, &id)).await
    }

    async fn output(&self, id: &TaskId) -> Result<Option<Vec<OutputChunk>>, StoreError> {
        let id = id.clone();
        self.read(move |view| read::output(&*view.read().engine()?, &id)).await
    }

    async fn list(&self, query: &TaskQuery) -> Result<TaskPage, StoreError> {
        let query = query.clone();
        self.read(move |view| {
            let (engine, counts) = {
                let inside = view.read();
                (inside.engine()?, inside.tallies)
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
        let inside = self.view.read();
        inside.engine().map(|_| inside.tallies)
    }

    async fn beat(&self, owner: &str, _: Duration) -> Result<(), StoreError> {
        check_owner(owner)
    }

    async fn adopt(&self, owner: &str, limit: usize) -> Result<Vec<TaskRecord>, StoreError> {
        check_owner(owner)?;
        let owner = owner.into();
        self.ask(|reply| Request::Adopt { owner, limit, reply }).await
    }

    async fn forget(&self, ended_before_ms: u64, limit: usize) -> Result<u64, StoreError> {
        self.ask(|reply| Request::Forget { ended_before_ms, limit, reply }).await
    }
}

fn failed(folder: &Path) -> StoreError {
    StoreError::Unavailable(format!("{}: the store has failed; open it again", folder.display()))
}
