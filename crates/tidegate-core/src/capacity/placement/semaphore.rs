use super::{DispatchState, PlacementPolicy, Protocol, Selection};
use std::cmp::Reverse;
use std::time::Duration;

/// One queue. Its head asks the ledger for a slot of any suitable executor. For each runtime, as many attempts ask
/// at once as slots seem free, plus one that waits in the ledger's queue among the heads of other managers. The
/// count is per runtime, so that attempts waiting for busy executors don't block those for idle ones.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Semaphore;

// === impl Semaphore ===

impl PlacementPolicy for Semaphore {
    fn next(
        &mut self,
        state: &DispatchState,
        now: Duration,
        _chance: &mut dyn FnMut() -> u64,
    ) -> Option<Selection> {
        let mut heads = state.queue.heads();
        heads.sort_unstable();
        let (_, ticket, runtime) = heads.into_iter().find(|(_, _, runtime)| {
            let asking = state.leasing.get(runtime).copied().unwrap_or(0);
            let able =
                state.fleet.with_room().filter(|(_, executor)| executor.serves.includes(*runtime));
            let free =
                able.fold(0_u32, |sum, (_, executor)| sum.saturating_add(executor.free(now)));
            // An attempt without an open executor does not ask, and blocks no other.
            asking <= free && state.fleet.open(*runtime, now).next().is_some()
        })?;
        let mut open: Vec<_> = state.fleet.open(runtime, now).collect();
        open.sort_by_key(|(id, executor)| (Reverse(executor.free(now)), *id));
        Some(Selection { ticket, executors: open.into_iter().map(|(id, _)| id).collect() })
    }

    fn protocol(&self) -> Protocol {
        Protocol::Leased
    }
}
