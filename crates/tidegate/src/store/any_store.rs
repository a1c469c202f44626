#[cfg(feature = "fjall")]
use super::FjallStore;
#[cfg(feature = "postgres")]
use super::PostgresStore;
use super::{
    Appended, PricedBatch, Records, SeriesLimits, Store, StoreError, StoreUrl, Unstored, UsagePage,
    UsageQuery,
};
use rust_decimal::Decimal;
use std::sync::Arc;
use tidegate_core::sequence::SeqWindow;

/// The store that an address names.
#[derive(Debug)]
#[non_exhaustive]
pub enum AnyStore {
    /// A folder of this machine.
    #[cfg(feature = "fjall")]
    Fjall(FjallStore),
    /// A PostgreSQL database.
    #[cfg(feature = "postgres")]
    Postgres(Box<PostgresStore>),
}

/// Calls the same of whichever store it is.
macro_rules! delegate {
    ($self:ident, $store:ident => $call:expr) => {
        match *$self {
            #[cfg(feature = "fjall")]
            AnyStore::Fjall(ref $store) => $call,
            #[cfg(feature = "postgres")]
            AnyStore::Postgres(ref $store) => $call,
        }
    };
}

// === impl AnyStore ===

impl AnyStore {
    /// Opens a folder, or connects to `postgres://user:password@host/database`; makes what is not there yet.
    ///
    /// # Errors
    ///
    /// [`Unusable`](StoreError::Unusable) when the address is not that of a store or the store belongs to another
    /// program, [`Unavailable`](StoreError::Unavailable) when it may work later.
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        let url: StoreUrl = url
            .parse()
            .map_err(|error: super::NotAStoreUrl| StoreError::Unusable(error.to_string()))?;
        match url {
            #[cfg(feature = "fjall")]
            StoreUrl::Folder(folder) => Ok(Self::Fjall(FjallStore::open(folder).await?)),
            #[cfg(feature = "postgres")]
            StoreUrl::Postgres(url) => {
                Ok(Self::Postgres(Box::new(PostgresStore::connect(&url).await?)))
            }
            #[cfg(not(all(feature = "fjall", feature = "postgres")))]
            other => Err(StoreError::Unusable(format!(
                "this program was built without the store that {other} needs"
            ))),
        }
    }

    /// The same store with bounds for its series.
    #[must_use]
    pub fn limited(self, limits: SeriesLimits) -> Self {
        match self {
            #[cfg(feature = "fjall")]
            Self::Fjall(store) => Self::Fjall(store.limited(limits)),
            #[cfg(feature = "postgres")]
            Self::Postgres(store) => Self::Postgres(Box::new(store.limited(limits))),
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

impl Store for AnyStore {
    async fn append(&self, batches: Vec<PricedBatch>) -> Result<Vec<Appended>, Unstored> {
        delegate!(self, store => store.append(batches).await)
    }

    async fn append_counted(
        &self,
        batches: Vec<PricedBatch>,
    ) -> Result<Vec<(Appended, u64)>, Unstored> {
        delegate!(self, store => store.append_counted(batches).await)
    }

    async fn retain(&self, before_ns: i64) -> Result<u64, StoreError> {
        delegate!(self, store => store.retain(before_ns).await)
    }

    fn scan(&self, from_ns: i64, until_ns: i64) -> Records {
        delegate!(self, store => store.scan(from_ns, until_ns))
    }

    async fn seen(&self, sender: &str) -> Result<SeqWindow, StoreError> {
        delegate!(self, store => store.seen(sender).await)
    }

    async fn owner(&self, sender: &str) -> Result<Option<Arc<str>>, StoreError> {
        delegate!(self, store => store.owner(sender).await)
    }

    async fn used(
        &self,
        tenant: &str,
        meter: &str,
        from_ns: i64,
        until_ns: i64,
    ) -> Result<Decimal, StoreError> {
        delegate!(self, store => store.used(tenant, meter, from_ns, until_ns).await)
    }

    async fn usage_page(&self, query: &UsageQuery) -> Result<UsagePage, StoreError> {
        delegate!(self, store => store.usage_page(query).await)
    }
}
