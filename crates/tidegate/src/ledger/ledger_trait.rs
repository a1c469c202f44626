use super::LedgerError;
use std::time::Duration;
use tidegate_core::capacity::{Acquired, SlotLease, SlotRequest};
use tidegate_core::task::ExecutionKey;

/// The slots of executors, and who holds them. Time is the ledger's own.
///
/// One conformance suite runs on every implementation; `tests/ledger` has it.
///
/// - Never more leases of an executor than it has slots.
/// - A lease that nobody renews ends with its ttl; so whatever crashes, its slot returns.
/// - At most one live fence for a holder, and fences only rise.
/// - Releasing twice is releasing once; a release or a renewal with a foreign fence changes nothing.
/// - Within a priority slots go to those who asked first, and nobody waits beside a slot that is free for them.
///
/// A slot that comes free while somebody waits is that waiter's at once, until its place in the line would have
/// ended; it hears of it when it asks again. [`changed`](Self::changed) says when that is worth it.
///
/// A ledger may lose its memory: a Redis that keeps nothing on disk and starts again knows of no lease and no
/// executor. Renewals are then false, and it may grant slots that are still in use. It never grants more than it
/// has by what it knows, so this is over when the leases of before are; until then the executor itself refuses
/// what it has no slot for. Fences rise all the same. For this, and because declarations end, executors are to be
/// declared again and again.
pub trait Ledger: Send + Sync + 'static {
    /// Says how many slots an executor has, for the next hour: say it again, for instance whenever the executor
    /// shows that it lives. Fewer than are held takes none away: they are not given again. None at all forgets it.
    /// Of an executor that was not declared no slot is given, and one may wait for it.
    ///
    /// # Errors
    ///
    /// When the ledger can't be asked, or [refuses](LedgerError::Refused).
    fn declare(
        &self,
        executor: &str,
        slots: u32,
    ) -> impl Future<Output = Result<(), LedgerError>> + Send;

    /// Takes a slot, or a place in the line for one. One atomic step. Asked again it gives the same slot for
    /// another ttl, or keeps the place for another ttl, also when the executors or the priority are others than
    /// before.
    ///
    /// # Errors
    ///
    /// When the ledger can't be asked. It may have granted all the same: asking again finds out. When it
    /// [refuses](LedgerError::Refused), because too many wait or the request can't be, nothing changed.
    ///
    /// # Cancel safety
    ///
    /// Dropped early it may have granted; asking again, releasing, or the ttl brings the slot back.
    fn acquire(
        &self,
        request: &SlotRequest,
    ) -> impl Future<Output = Result<Acquired, LedgerError>> + Send;

    /// Keeps a lease for another ttl from now; it never becomes shorter by that. False when it is not held any
    /// more.
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

    /// Leaves the line, or gives back a slot that came meanwhile and that no answer has told of. False when there
    /// was neither. What an answer told of is released; when that answer may have been lost, ask again to find
    /// out.
    ///
    /// # Errors
    ///
    /// When the ledger can't be asked; the place then ends with its ttl.
    fn withdraw(
        &self,
        holder: &ExecutionKey,
    ) -> impl Future<Output = Result<bool, LedgerError>> + Send;

    /// The executor itself has told what it runs: leases of others that were granted before `asked_after` (a fence
    /// that [`latest_fence`](Self::latest_fence) gave before the executor was asked) are ended. Returns how many.
    ///
    /// An execution on its way to the executor does not run there yet. Therefore take the fence, wait for as long
    /// as a submission may take, then ask the executor; include its reservations in `running`.
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

    /// Number of leased slots of an executor.
    ///
    /// # Errors
    ///
    /// When the ledger can't be asked.
    fn held(&self, executor: &str) -> impl Future<Output = Result<u32, LedgerError>> + Send;

    /// Waits until a slot may have come free: one was released, or declared, or some time went by.
    ///
    /// # Cancel safety
    ///
    /// A change between two calls is not missed: the next returns at once. Where several wait at the same time,
    /// each has to have a clone of its own, which remembers by itself what it has seen.
    fn changed(&self) -> impl Future<Output = ()> + Send;
}
