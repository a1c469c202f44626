use super::super::line::Place;
use super::super::{ExecutorId, Ticket};
use super::{PlaceNext, Protocol, Step, World};
use std::cmp::Reverse;
use std::time::Duration;

/// One line. As long as an executor has a free slot and somebody waits who can use it, the first who can goes
/// there; of several executors to the one with the most room.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pull {
    reserves: bool,
}

/// The place in the line, the room, the executor: the smallest is next.
type Rank = (Place, Reverse<u32>, ExecutorId);

// === impl Pull ===

impl Pull {
    /// Attempts are sent at once: what is believed of the slots is nearly always right.
    pub fn direct() -> Self {
        Self { reserves: false }
    }

    /// A slot is reserved first.
    pub fn reserving() -> Self {
        Self { reserves: true }
    }
}

impl PlaceNext for Pull {
    fn next(
        &mut self,
        world: &World,
        now: Duration,
        _chance: &mut dyn FnMut() -> u64,
    ) -> Option<Step> {
        if world.line.is_empty() {
            return None;
        }
        let mut best: Option<(Rank, Ticket)> = None;
        for (id, executor) in world.fleet.roomy() {
            let free = executor.free(now);
            if free == 0 {
                continue;
            }
            let Some((place, ticket)) = world.line.head(&executor.serves) else { continue };
            let rank = (place, Reverse(free), id);
            if best.is_none_or(|(other, _)| rank < other) {
                best = Some((rank, ticket));
            }
        }
        best.map(|((.., id), ticket)| Step { ticket, executors: vec![id] })
    }

    fn protocol(&self) -> Protocol {
        if self.reserves { Protocol::Reserved } else { Protocol::Direct }
    }
}
