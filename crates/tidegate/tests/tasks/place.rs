use crate::support::folder::TempFolder;
use crate::support::postgres::Postgres;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tidegate::tasks::AnyTaskStore;

static NEXT_SCHEMA: AtomicU32 = AtomicU32::new(0);

/// Where a test's tasks are. They stay until the test ends.
pub struct Place {
    pub url: String,
    _folder: Option<TempFolder>,
    _server: Option<Arc<Postgres>>,
}

impl Place {
    pub fn folder() -> Self {
        let folder = TempFolder::new("tasks");
        let url = folder.path().join("new").to_str().unwrap().to_owned();
        Self { url, _folder: Some(folder), _server: None }
    }

    pub fn postgres() -> Self {
        let server = Postgres::shared();
        let number = NEXT_SCHEMA.fetch_add(1, Ordering::Relaxed);
        let url = server.url(&format!("schema=test_{number}"));
        Self { url, _folder: None, _server: Some(server) }
    }

    pub async fn open(&self) -> AnyTaskStore {
        AnyTaskStore::open(&self.url).await.unwrap()
    }

    /// Ends the life of the store, and begins the next.
    pub async fn reopen(&self, store: AnyTaskStore) -> AnyTaskStore {
        store.close().await;
        self.open().await
    }
}

/// Runs a test's body as programs run ours: on several threads.
pub fn run<T>(body: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(body)
}
