use crate::support::folder::TempFolder;
use crate::support::postgres::Postgres;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tidegate::store::AnyStore;

static NEXT_SCHEMA: AtomicU32 = AtomicU32::new(0);

/// Where a test's store is. What was stored there stays until the test ends.
pub struct Place {
    url: String,
    _folder: Option<TempFolder>,
    _server: Option<Arc<Postgres>>,
}

impl Place {
    pub fn folder() -> Self {
        let folder = TempFolder::new("store");
        let url = folder.path().join("new").to_str().unwrap().to_owned();
        Self { url, _folder: Some(folder), _server: None }
    }

    pub fn postgres() -> Self {
        let server = Postgres::shared();
        let number = NEXT_SCHEMA.fetch_add(1, Ordering::Relaxed);
        let url = server.url(&format!("schema=test_{number}"));
        Self { url, _folder: None, _server: Some(server) }
    }

    pub async fn open(&self) -> AnyStore {
        AnyStore::open(&self.url).await.unwrap()
    }
}

/// Runs a test's body as programs run ours: on several threads.
pub fn run<T>(body: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(body)
}
