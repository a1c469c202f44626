use super::{PlaceNext, Protocol, Step, World};
use std::cmp::Reverse;
use std::time::Duration;

/// One line. Its head asks the ledger for a slot of any executor that it can use; of each runtime as many ask at
/// once as there seem to be free slots for it, and one more, which then stands in the ledger's line among the
/// heads of other managers. By runtime, because one who waits in the ledger's line for busy executors must not
/// keep another from asking for an idle one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Semaphore;

// === impl Semaphore ===

impl PlaceNext for Semaphore {
    fn next(
        &mut self,
        world: &World,
        now: Duration,
        _chance: &mut dyn FnMut() -> u64,
    ) -> Option<Step> {
        let mut heads = world.line.heads();
        heads.sort_unstable();
        let (_, ticket, runtime) = heads.into_iter().find(|(_, _, runtime)| {
            let asking = world.leasing.get(runtime).copied().unwrap_or(0);
            let able = world.fleet.roomy().filter(|(_, it)| it.serves.includes(*runtime));
            let free = able.fold(0_u32, |sum, (_, it)| sum.saturating_add(it.free(now)));
            // Whom nobody can serve does not ask, and holds up nobody.
            asking <= free && world.fleet.open(*runtime, now).next().is_some()
        })?;
        let mut open: Vec<_> = world.fleet.open(runtime, now).collect();
        open.sort_by_key(|(id, it)| (Reverse(it.free(now)), *id));
        Some(Step { ticket, executors: open.into_iter().map(|(id, _)| id).collect() })
    }

    fn protocol(&self) -> Protocol {
        Protocol::Leased
    }
}
