use super::folder::unavailable;
use super::{Database, Engine, Folder, Kind, View};
use crate::storage::StoreError;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;

/// The sender of an answer. A caller that has left does not need it.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// The part of a store that changes it, on a thread of its own.
pub(crate) trait Writer: Sized + Send + 'static {
    type Engine: Engine;
    type Request: Send + 'static;

    /// The kind of store that the folder holds.
    const KIND: Kind;
    /// The name of the thread.
    const THREAD: &'static str;
    /// The number of requests that may be queued for the writer. More wait in the calls themselves.
    const REQUESTS_MAX: usize;

    /// Opens the database of a folder, or creates one.
    fn open(folder: Folder) -> Result<Self, StoreError>;

    fn database(&mut self) -> &mut Database<Self::Engine>;

    /// Handles requests until all senders are gone.
    fn serve(self, requests: mpsc::Receiver<Self::Request>);

    /// Runs a step. A panic inside the engine counts as a failed write: the next write opens the database again.
    fn guarded<T>(
        &mut self,
        step: impl FnOnce(&mut Self) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        catch_unwind(AssertUnwindSafe(|| step(self)))
            .unwrap_or_else(|_| Err(self.database().close_after_panic()))
    }
}

/// The handle of a writer and its thread, shared by all callers of a store.
pub(crate) struct WriterThread<W: Writer> {
    folder: PathBuf,
    view: Arc<View<W::Engine>>,
    requests: mpsc::Sender<W::Request>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

// === impl WriterThread ===

impl<W: Writer> WriterThread<W> {
    /// Opens a folder, or creates it, and starts its writer.
    pub(crate) async fn open(folder: &Path) -> Result<Self, StoreError> {
        let folder = folder.to_owned();
        let path = folder.clone();
        let open = move || W::open(Folder::take(&path, W::KIND)?);
        let mut writer = spawn_blocking(open).await.map_err(|_| failed(&folder))??;
        let (requests, queue) = mpsc::channel(W::REQUESTS_MAX);
        let view = Arc::clone(&writer.database().view);
        let thread = std::thread::Builder::new()
            .name(W::THREAD.into())
            .spawn(move || writer.serve(queue))
            .map_err(|error| unavailable(&folder, &error))?;
        Ok(Self { folder, view, requests, thread: Mutex::new(Some(thread)) })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn view(&self) -> &Arc<View<W::Engine>> {
        &self.view
    }

    /// Finishes the requests that are queued and releases the folder.
    pub(crate) async fn close(self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(self);
        if let Some(thread) = thread {
            // A panic of the thread has been reported to its callers.
            let _ = spawn_blocking(|| thread.join()).await;
        }
    }

    /// Queues a request for the writer and waits for the answer.
    pub(crate) async fn ask<T>(
        &self,
        request: impl FnOnce(Reply<T>) -> W::Request,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(request(reply)).await.map_err(|_| failed(&self.folder))?;
        answer.await.map_err(|_| failed(&self.folder))?
    }

    /// Reads on a thread that may block; the writer is not involved.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&View<W::Engine>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let view = Arc::clone(&self.view);
        spawn_blocking(move || read(&view)).await.map_err(|_| failed(&self.folder))?
    }
}

impl<W: Writer> fmt::Debug for WriterThread<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WriterThread").field(&self.folder).finish()
    }
}

fn failed(folder: &Path) -> StoreError {
    StoreError::Unavailable(format!("{}: the store has failed; open it again", folder.display()))
}
