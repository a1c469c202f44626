use super::engine::UsageView;
use super::read;
use super::writer::{Append, Request, UsageWriter};
use crate::storage::fjall::WriterThread;
use crate::store::{
    Appended, PricedBatch, Records, SeriesLimits, Store, StoreError, Unstored, UsagePage,
    UsageQuery,
};
use rust_decimal::Decimal;
use std::path::Path;
use std::sync::Arc;
use tidegate_core::sequence::SeqWindow;
use tokio::task::spawn_blocking;

/// A store in a folder of this machine.
///
/// Records are stored in blocks, with sums by minute, hour and day. One thread writes; appends
/// that wait are committed together, with one sync of the journal (`fdatasync`: it covers the data and the size
/// of the file, which is what a power cut must not take). Readers don't wait for it. After a failed write, such
/// as on a full disk, the folder is opened again by the next append; no restart is needed.
///
/// Uses less than 64 MB of memory besides the batches that are being appended.
///
/// ```
/// use tidegate::store::{Appended, FjallStore, PricedBatch, Store};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # let folder = std::env::temp_dir().join(format!("tidegate-doc-{}", std::process::id()));
/// # runtime.block_on(async {
/// let store = FjallStore::open(&folder).await?;
/// let batch = PricedBatch { origin: None, source: "a".into(), records: Vec::new() };
/// assert_eq!(store.append(vec![batch]).await?, [Appended::New]);
/// store.close().await;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # std::fs::remove_dir_all(folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FjallStore {
    writer: WriterThread<UsageWriter>,
    limits: SeriesLimits,
}

// === impl FjallStore ===

impl FjallStore {
    /// Opens a folder, or creates it. Only one process at a time can have it open.
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
        let writer = WriterThread::open(folder.as_ref()).await?;
        Ok(Self { writer, limits: SeriesLimits::default() })
    }

    /// The same store with bounds for its series.
    #[must_use]
    pub fn limited(self, limits: SeriesLimits) -> Self {
        Self { limits, ..self }
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

impl Store for FjallStore {
    async fn append(&self, batches: Vec<PricedBatch>) -> Result<Vec<Appended>, Unstored> {
        let counted = self.append_counted(batches).await?;
        Ok(counted.into_iter().map(|(appended, _)| appended).collect())
    }

    async fn append_counted(
        &self,
        batches: Vec<PricedBatch>,
    ) -> Result<Vec<(Appended, u64)>, Unstored> {
        let batches = Arc::new(batches);
        let shared = Arc::clone(&batches);
        self.writer
            .ask(|reply| Request::Append(Append { batches: shared, limits: self.limits, reply }))
            .await
            .map_err(|error| Unstored { batches: Arc::unwrap_or_clone(batches), error })
    }

    async fn retain(&self, before_ns: i64) -> Result<u64, StoreError> {
        self.writer.ask(|reply| Request::Retain { before_ns, reply }).await
    }

    fn scan(&self, from_ns: i64, until_ns: i64) -> Records {
        let (sender, records) = Records::channel();
        let view = Arc::clone(self.writer.view());
        spawn_blocking(move || read::scan(&view, from_ns, until_ns, &sender));
        records
    }

    async fn seen(&self, sender: &str) -> Result<SeqWindow, StoreError> {
        let sender = sender.to_owned();
        let read = move |view: &UsageView| read::sender(&*view.read().engine()?, &sender);
        Ok(self.writer.read(read).await?.window)
    }

    async fn owner(&self, sender: &str) -> Result<Option<Arc<str>>, StoreError> {
        let sender = sender.to_owned();
        let read = move |view: &UsageView| read::sender(&*view.read().engine()?, &sender);
        Ok(self.writer.read(read).await?.owner)
    }

    async fn used(
        &self,
        tenant: &str,
        meter: &str,
        from_ns: i64,
        until_ns: i64,
    ) -> Result<Decimal, StoreError> {
        let (tenant, meter) = (tenant.to_owned(), meter.to_owned());
        self.writer.read(move |view| read::used(view, &tenant, &meter, from_ns, until_ns)).await
    }

    async fn usage_page(&self, query: &UsageQuery) -> Result<UsagePage, StoreError> {
        let query = query.clone();
        self.writer.read(move |view| read::usage(view, &query)).await
    }
}
