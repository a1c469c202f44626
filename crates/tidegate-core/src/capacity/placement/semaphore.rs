use super::{PlaceNext, Protocol, Step, World};
use std::time::Duration;

/// One line. Its head asks the ledger for a slot of any executor that it can use; as many ask at once as there seem to
/// be free slots, and one more, which then stands in the ledger's line among the heads of other managers.
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
        if world.leasing > world.fleet.free(now) {
            return None;
        }
        // Whoever can be served by somebody who is there; what nobody can run does not hold up the others.
        let up = world.fleet.iter().filter(|(_, it)| it.is_open(now));
        let (_, ticket) = up.filter_map(|(_, it)| world.line.head(&it.serves)).min()?;
        let (_, runtime) = world.line.place_of(ticket)?;
        let mut open: Vec<_> = world.fleet.open(runtime, now).collect();
        open.sort_by_key(|(id, it)| (std::cmp::Reverse(it.free(now)), *id));
        Some(Step { ticket, executors: open.into_iter().map(|(id, _)| id).collect() })
    }

    fn protocol(&self) -> Protocol {
        Protocol::Leased
    }
}
