use super::super::ExecutorId;
use super::super::fleet::ExecutorBelief;
use super::{PlaceNext, Protocol, Step, World};
use std::time::Duration;

/// The less loaded of two executors is asked, whatever others have there: it refuses when it is full, and is then
/// left alone for as long as it said or until something of ours ends there. Only who is full of our own is not
/// asked: it would refuse each of a long line, every time that one ends.
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
        let mut heads = world.line.heads();
        heads.sort_unstable();
        let (ticket, open) = heads.into_iter().find_map(|(_, ticket, runtime)| {
            let roomy = world.fleet.roomy();
            let open = roomy.filter(|(_, it)| it.is_open(now) && it.serves.includes(runtime));
            let open: Vec<_> = open.collect();
            (!open.is_empty()).then_some((ticket, open))
        })?;
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
