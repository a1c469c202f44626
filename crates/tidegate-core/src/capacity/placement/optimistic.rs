use super::super::ExecutorId;
use super::super::fleet::ExecutorState;
use super::{DispatchState, PlacementPolicy, Protocol, Selection};
use std::time::Duration;

/// Asks the less loaded of two random executors without knowing about slots that others hold. A full one refuses,
/// and is left alone until the pause it asked for ends or an own attempt ends there. An executor filled by own
/// attempts is not asked: it would refuse every queued attempt each time one of them ends.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Optimistic;

// === impl Optimistic ===

impl PlacementPolicy for Optimistic {
    fn next(
        &mut self,
        state: &DispatchState,
        now: Duration,
        random: &mut dyn FnMut() -> u64,
    ) -> Option<Selection> {
        // The head of the queue or, if no executor can run it, the first attempt that one can.
        let mut heads = state.queue.heads();
        heads.sort_unstable();
        let (ticket, open) = heads.into_iter().find_map(|(_, ticket, runtime)| {
            let with_room = state.fleet.with_room();
            let open = with_room
                .filter(|(_, executor)| executor.is_open(now) && executor.serves.includes(runtime));
            let open: Vec<_> = open.collect();
            (!open.is_empty()).then_some((ticket, open))
        })?;
        let one = pick(&open, random)?;
        let two = pick(&open, random)?;
        let (id, _) = if load(two.1) < load(one.1) { two } else { one };
        Some(Selection { ticket, executors: vec![id] })
    }

    fn protocol(&self) -> Protocol {
        Protocol::Direct
    }
}

fn pick<'a>(
    open: &[(ExecutorId, &'a ExecutorState)],
    random: &mut dyn FnMut() -> u64,
) -> Option<(ExecutorId, &'a ExecutorState)> {
    let index = usize::try_from(random() % (open.len() as u64).max(1)).ok()?;
    open.get(index).copied()
}

/// Own attempts per slot, in thousandths.
fn load(executor: &ExecutorState) -> u64 {
    u64::from(executor.own) * 1_000 / u64::from(executor.max.max(1))
}
