use super::super::fleet::ExecutorBelief;
use super::super::{ExecutorId, Serves};
use super::{PlaceNext, Protocol, Step, World};
use std::time::Duration;

/// The less loaded of two executors is asked, full or not: it refuses when it is, and is then left alone for as long as
/// it said or until something of ours ends there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Optimistic;

// === impl Optimistic ===

impl PlaceNext for Optimistic {
    fn next(
        &mut self,
        world: &World,
        now: Duration,
        chance: &mut dyn FnMut() -> u64,
    ) -> Option<Step> {
        // The head of the line; where nobody can have it, the first whom somebody can.
        let (_, head) = world.line.head(&Serves::All)?;
        let (_, runtime) = world.line.place_of(head)?;
        let mut ticket = head;
        let mut open: Vec<_> = world.fleet.open(runtime, now).collect();
        if open.is_empty() {
            let others = world.fleet.iter().filter(|(_, it)| it.is_open(now));
            let (_, next) = others.filter_map(|(_, it)| world.line.head(&it.serves)).min()?;
            let (_, runtime) = world.line.place_of(next)?;
            ticket = next;
            open = world.fleet.open(runtime, now).collect();
        }
        let one = pick(&open, chance)?;
        let two = pick(&open, chance)?;
        let (id, _) = if load(two.1) < load(one.1) { two } else { one };
        Some(Step { ticket, executors: vec![id] })
    }

    fn protocol(&self) -> Protocol {
        Protocol::Direct
    }
}

fn pick<'a>(
    open: &[(ExecutorId, &'a ExecutorBelief)],
    chance: &mut dyn FnMut() -> u64,
) -> Option<(ExecutorId, &'a ExecutorBelief)> {
    let index = usize::try_from(chance() % (open.len() as u64).max(1)).ok()?;
    open.get(index).copied()
}

/// Attempts a slot, in thousandths.
fn load(executor: &ExecutorBelief) -> u64 {
    u64::from(executor.ours) * 1_000 / u64::from(executor.max.max(1))
}
