use super::LedgerError;
use std::time::Duration;
use tidegate_core::admission::MessagePriority;
use tidegate_core::task::ExecutionKey;

/// Who wants a slot, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotRequest {
    /// Who: a task and its attempt. The attempt is part of the name, or a zombie would share its successor's slot.
    pub holder: ExecutionKey,
    /// Who goes first.
    pub priority: MessagePriority,
    /// Any of these executors will do; the first that has a free slot is taken.
    pub executors: Vec<Box<str>>,
    /// How long the slot is the holder's unless it is renewed, and how long the holder's place in the line is kept
    /// unless it asks again.
    pub ttl: Duration,
}

/// A slot that is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotLease {
    /// Whose it is.
    pub holder: ExecutionKey,
    /// Where it is.
    pub executor: Box<str>,
    /// Higher than every fence that this ledger gave before.
    pub fence: u64,
}

/// What became of a request for a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acquired {
    /// There is one. Asked again by the same holder, it is the same one.
    Granted(SlotLease),
    /// There is none, or others come first. The request has its place in the line, which it keeps by asking again
    /// within its ttl.
    Waiting {
        /// How many come first.
        ahead: u64,
    },
}

/// The slots of executors, and who holds them. Time is the ledger's own.
///
/// One conformance suite runs on every implementation; `tests/ledger` has it.
///
/// - Never more leases of an executor than it has slots.
/// - A lease that nobody renews ends with its ttl; so whatever crashes, its slot returns.
/// - At most one live fence for a holder, and fences only rise.
/// - Releasing twice is releasing once; a release or a renewal with a foreign fence changes nothing.
/// - Within a priority slots go to those who asked first, and nobody waits beside a slot that is free for them.
pub trait Ledger: Send + Sync + 'static {
    /// Says how many slots an executor has. Fewer than are held takes none away: they are not given again.
    ///
    /// # Errors
    ///
    /// When the ledger can't be asked.
    fn declare(
        &self,
        executor: &str,
        slots: u32,
    ) -> impl Future<Output = Result<(), LedgerError>> + Send;

    /// Takes a slot, or a place in the line for one. One atomic step.
    ///
    /// # Errors
    ///
    /// When the ledger can't be asked. It may have granted all the same: asking again finds out.
    ///
    /// # Cancel safety
    ///
    /// Dropped early it may have granted; asking again, releasing, or the ttl brings the slot back.
    fn acquire(
        &self,
        request: &SlotRequest,
    ) -> impl Future<Output = Result<Acquired, LedgerError>> + Send;

    /// Keeps a lease for another ttl from now; it never becomes shorter by that. False when it is not held any more.
    ///
    /// # Errors
    ///
    /// When the ledger can't be asked.
    fn renew(
        &self,
        lease: &SlotLease,
        ttl: Duration,
    ) -> impl Future<Output = Result<bool, LedgerError>> + Send;

    /// Gives a slot back. False when it was not held any more.
    ///
    /// # Errors
    ///
    /// When the ledger can't be asked; the slot then returns with its ttl.
    fn release(&self, lease: &SlotLease) -> impl Future<Output = Result<bool, LedgerError>> + Send;

    /// Leaves the line. False when it was not in it.
    ///
    /// # Errors
    ///
    /// When the ledger can't be asked; the place then ends with its ttl.
    fn withdraw(
        &self,
        holder: &ExecutionKey,
    ) -> impl Future<Output = Result<bool, LedgerError>> + Send;

    /// The executor itself has told what it runs: leases of others that were granted before `asked_after` (a fence that
    /// [`latest_fence`](Self::latest_fence) gave before the executor was asked) are ended. Returns how many.
    ///
    /// # Errors
    ///
    /// When the ledger can't be asked.
    fn reconcile(
        &self,
        executor: &str,
        running: &[ExecutionKey],
        asked_after: u64,
    ) -> impl Future<Output = Result<u64, LedgerError>> + Send;

    /// The highest fence given so far.
    ///
    /// # Errors
    ///
    /// When the ledger can't be asked.
    fn latest_fence(&self) -> impl Future<Output = Result<u64, LedgerError>> + Send;

    /// How many slots of an executor are held.
    ///
    /// # Errors
    ///
    /// When the ledger can't be asked.
    fn held(&self, executor: &str) -> impl Future<Output = Result<u32, LedgerError>> + Send;

    /// Waits until a slot may have come free: one was released, or declared, or some time went by.
    ///
    /// # Cancel safety
    ///
    /// A change between two calls is not missed: the next returns at once.
    fn changed(&self) -> impl Future<Output = ()> + Send;
}
