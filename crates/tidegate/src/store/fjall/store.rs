use super::folder::{Folder, Kind};
use super::read;
use super::view::View;
use super::writer::{Append, Request, Writer};
use crate::store::{
    Appended, PricedBatch, Records, Store, StoreError, Unstored, UsageQuery, UsageRow,
};
use rust_decimal::Decimal;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tidegate_core::sequence::SeqWindow;
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;

/// What a folder of ours says that it is.
pub(super) const KIND: Kind = Kind { title: "tidegate store", version: 1 };

/// How many appends may wait for the writer. More wait in `append` itself.
const REQUESTS_WAITING: usize = 64;

/// A store in a folder of this machine.
///
/// Records are kept in blocks, sums beside them by the minute, the hour and the day. One thread writes; appends
/// that wait are committed together, with one sync of the journal (`fdatasync`: it covers the data and the size
/// of the file, which is what a power cut must not take). Readers don't wait for it. After a failed write, such
/// as on a full disk, the folder is opened again by the next append; no restart is needed.
///
/// It takes less than 64 MB of memory besides what is being appended.
///
/// ```
/// use tidegate::store::{Appended, FjallStore, PricedBatch, Store};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # let folder = std::env::temp_dir().join(format!("tidegate-doc-{}", std::process::id()));
/// # runtime.block_on(async {
/// let store = FjallStore::open(&folder).await?;
/// let batch = PricedBatch { origin: None, records: Vec::new() };
/// assert_eq!(store.append(vec![batch]).await?, [Appended::New]);
/// store.close().await;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # std::fs::remove_dir_all(folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FjallStore {
    folder: PathBuf,
    view: Arc<View>,
    requests: mpsc::Sender<Request>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

// === impl FjallStore ===

impl FjallStore {
    /// Opens a folder, which is made when it is not there. Only one process at a time can have it open.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](StoreError::Unavailable) when another process has it open or the disk fails,
    /// [`Unusable`](StoreError::Unusable) when it holds something else, a newer version, or is damaged.
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
            .name("tidegate-store".into())
            .spawn(move || writer.serve(waiting))
            .map_err(|error| super::folder::unavailable(&folder, &error))?;
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
        request: Request,
        answer: oneshot::Receiver<Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.requests.send(request).await.map_err(|_| failed(&self.folder))?;
        answer.await.map_err(|_| failed(&self.folder))?
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&View) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let view = self.view.clone();
        spawn_blocking(move || read(&view)).await.map_err(|_| failed(&self.folder))?
    }
}

impl Store for FjallStore {
    async fn append(&self, batches: Vec<PricedBatch>) -> Result<Vec<Appended>, Unstored> {
        let batches = Arc::new(batches);
        let (reply, answer) = oneshot::channel();
        let request = Request::Append(Append { batches: batches.clone(), reply });
        self.ask(request, answer)
            .await
            .map_err(|error| Unstored { batches: Arc::unwrap_or_clone(batches), error })
    }

    async fn retain(&self, before_ns: i64) -> Result<u64, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.ask(Request::Retain { before_ns, reply }, answer).await
    }

    fn scan(&self, from_ns: i64, until_ns: i64) -> Records {
        let (sender, records) = Records::channel();
        let view = self.view.clone();
        spawn_blocking(move || read::scan(&view, from_ns, until_ns, &sender));
        records
    }

    async fn seen(&self, sender: &str) -> Result<SeqWindow, StoreError> {
        let sender = sender.to_owned();
        self.read(move |view| read::window(&*view.read().engine()?, &sender)).await
    }

    async fn used(
        &self,
        tenant: &str,
        meter: &str,
        from_ns: i64,
        until_ns: i64,
    ) -> Result<Decimal, StoreError> {
        let (tenant, meter) = (tenant.to_owned(), meter.to_owned());
        self.read(move |view| read::used(view, &tenant, &meter, from_ns, until_ns)).await
    }

    async fn usage(&self, query: &UsageQuery) -> Result<Vec<UsageRow>, StoreError> {
        let query = query.clone();
        self.read(move |view| read::usage(view, &query)).await
    }
}

fn failed(folder: &Path) -> StoreError {
    StoreError::Unavailable(format!("{}: the store has failed; open it again", folder.display()))
}
