#[cfg(feature = "redis")]
use super::RedisLedger;
use super::{
    Acquired, Ledger, LedgerError, LedgerUrl, MemoryLedger, NotALedgerUrl, SlotLease, SlotRequest,
};
use std::time::Duration;
use tidegate_core::task::ExecutionKey;

/// The ledger that an address names. Clones share it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AnyLedger {
    /// The memory of this process.
    Memory(MemoryLedger),
    /// A Redis or a Valkey.
    #[cfg(feature = "redis")]
    Redis(RedisLedger),
}

/// Calls the same of whichever ledger it is.
macro_rules! delegate {
    ($self:ident, $ledger:ident => $call:expr) => {
        match $self {
            AnyLedger::Memory($ledger) => $call,
            #[cfg(feature = "redis")]
            AnyLedger::Redis($ledger) => $call,
        }
    };
}

// === impl AnyLedger ===

impl AnyLedger {
    /// Makes one in memory for `memory:`, or connects to `redis://user:password@host:port/database`.
    ///
    /// Parameters of a Redis address: `namespace=` (`tidegate` by default) keeps installations apart that share a
    /// server, `timeout_ms=` (1000 by default) is how long a call may take.
    ///
    /// # Errors
    ///
    /// [`Unusable`](LedgerError::Unusable) when the address is not that of a ledger or the server lets us not use
    /// it, [`Unavailable`](LedgerError::Unavailable) when it may work later.
    pub async fn open(url: &str) -> Result<Self, LedgerError> {
        let unusable = |error: NotALedgerUrl| LedgerError::Unusable(error.to_string());
        match url.parse().map_err(unusable)? {
            LedgerUrl::Memory => Ok(Self::Memory(MemoryLedger::new())),
            #[cfg(feature = "redis")]
            LedgerUrl::Redis(url) => Ok(Self::Redis(RedisLedger::connect(&url).await?)),
            #[cfg(not(feature = "redis"))]
            other => Err(LedgerError::Unusable(format!(
                "this program was built without the ledger that {other} needs"
            ))),
        }
    }
}

impl Ledger for AnyLedger {
    async fn declare(&self, executor: &str, slots: u32) -> Result<(), LedgerError> {
        delegate!(self, ledger => ledger.declare(executor, slots).await)
    }

    async fn acquire(&self, request: &SlotRequest) -> Result<Acquired, LedgerError> {
        delegate!(self, ledger => ledger.acquire(request).await)
    }

    async fn renew(&self, lease: &SlotLease, ttl: Duration) -> Result<bool, LedgerError> {
        delegate!(self, ledger => ledger.renew(lease, ttl).await)
    }

    async fn release(&self, lease: &SlotLease) -> Result<bool, LedgerError> {
        delegate!(self, ledger => ledger.release(lease).await)
    }

    async fn withdraw(&self, holder: &ExecutionKey) -> Result<bool, LedgerError> {
        delegate!(self, ledger => ledger.withdraw(holder).await)
    }

    async fn reconcile(
        &self,
        executor: &str,
        running: &[ExecutionKey],
        asked_after: u64,
    ) -> Result<u64, LedgerError> {
        delegate!(self, ledger => ledger.reconcile(executor, running, asked_after).await)
    }

    async fn latest_fence(&self) -> Result<u64, LedgerError> {
        delegate!(self, ledger => ledger.latest_fence().await)
    }

    async fn held(&self, executor: &str) -> Result<u32, LedgerError> {
        delegate!(self, ledger => ledger.held(executor).await)
    }

    async fn changed(&self) {
        delegate!(self, ledger => ledger.changed().await);
    }
}
