use super::world::{Flaw, Message, What, World, key};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tidegate_core::capacity::{Cancelled, ExecuteRefused, ExecutorSlots, Granted, ReserveRefused};
use tidegate_core::task::{ExecutionKey, TaskOutcome};

/// Time stands still until it is said to have run out.
const NOW: Duration = Duration::ZERO;
const TTL: Duration = Duration::from_secs(1);

/// The shipped slots of one executor, and what it knows of executions that are over.
#[derive(Clone, Hash)]
pub struct Executor {
    slots: ExecutorSlots,
    over: BTreeMap<ExecutionKey, (u64, TaskOutcome)>,
    /// Executions without a slot, of a defective executor.
    extra: BTreeSet<(ExecutionKey, u64)>,
    fence_last: u64,
    pub fence_fell: bool,
}

// === impl Executor ===

impl Executor {
    pub fn new() -> Self {
        Self {
            slots: ExecutorSlots::new(1, 0),
            over: BTreeMap::new(),
            extra: BTreeSet::new(),
            fence_last: 0,
            fence_fell: false,
        }
    }

    /// Restarts with empty memory; fences continue from above.
    pub fn crash(&mut self) {
        let (fence_last, fence_fell) = (self.fence_last, self.fence_fell);
        let slots = ExecutorSlots::new(1, fence_last);
        *self = Self { slots, fence_last, fence_fell, ..Self::new() };
    }

    /// Reservations run out, and so do leases: what nobody asks for is stopped.
    pub fn expire(&mut self) {
        for (key, _) in self.slots.expire(TTL) {
            self.finish(&key, TaskOutcome::Cancelled);
        }
    }

    pub fn running(&self) -> Vec<ExecutionKey> {
        let extra = self.extra.iter().map(|run| run.0.clone());
        self.slots.running().map(|run| run.0.clone()).chain(extra).collect()
    }

    pub fn finish(&mut self, key: &ExecutionKey, outcome: TaskOutcome) {
        let fence = self.slots.running().find(|run| run.0 == key).map(|run| run.1);
        if let Some(fence) = fence.filter(|fence| self.slots.finish(key, *fence)) {
            self.over.insert(key.clone(), (fence, outcome));
        }
        if let Some(run) = self.extra.iter().find(|run| run.0 == *key).cloned() {
            self.extra.remove(&run);
            self.over.insert(run.0, (run.1, outcome));
        }
    }

    pub fn is_overfull(&self) -> bool {
        let occupancy = self.slots.occupancy(NOW);
        let extra = u32::try_from(self.extra.len()).unwrap();
        occupancy.running + occupancy.reserved + extra > occupancy.max
    }

    fn gave(&mut self, fence: u64) {
        self.fence_fell |= fence <= self.fence_last;
        self.fence_last = fence;
    }

    fn reserve(&mut self, key: &ExecutionKey) -> What {
        match self.slots.reserve(key, TTL, NOW) {
            Ok(held) => {
                if held.fence != self.fence_last {
                    self.gave(held.fence);
                }
                What::Reserved(held.fence)
            }
            Err(ReserveRefused::Full) => What::Full,
            Err(ReserveRefused::Started) => What::Came,
            Err(ReserveRefused::Cancelled) => What::Ahead,
        }
    }

    /// The answer, and whether something was started by it.
    fn execute(&mut self, key: &ExecutionKey, with: Option<u64>, flaw: Flaw) -> (What, bool) {
        let mut key = key.clone();
        while flaw == Flaw::NoIdempotency && self.slots_know(&key) {
            // As somebody does who does not look at the key: it is another execution each time.
            key.attempt += 100;
        }
        let with = with.filter(|_| flaw != Flaw::NoIdempotency || key.attempt < 100);
        match self.slots.execute(&key, 0, with, Some(TTL), NOW) {
            Ok(Granted { fence, first }) => {
                if first && with.is_none() {
                    self.gave(fence);
                }
                (What::Started(fence), first)
            }
            Err(ExecuteRefused::Gone) if flaw == Flaw::NoValidation => {
                let fence = with.unwrap_or(0);
                (What::Started(fence), self.extra.insert((key, fence)))
            }
            Err(ExecuteRefused::Full) => (What::Full, false),
            Err(ExecuteRefused::Cancelled) => (What::Ahead, false),
            Err(ExecuteRefused::Gone | ExecuteRefused::Conflict) => (What::Gone, false),
        }
    }

    fn slots_know(&self, key: &ExecutionKey) -> bool {
        self.over.contains_key(key) || self.slots.running().any(|run| run.0 == key)
    }

    fn ask(&mut self, key: &ExecutionKey) -> What {
        if let Some((fence, outcome)) = self.over.get(key) {
            return What::Over(*fence, *outcome);
        }
        self.slots.renew(key, None, NOW);
        let extra = self.extra.iter().find(|run| run.0 == *key).map(|run| run.1);
        let fence = self.slots.running().find(|run| run.0 == key).map(|run| run.1);
        fence.or(extra).map_or(What::Unknown, What::Runs)
    }

    fn cancel(&mut self, key: &ExecutionKey) -> What {
        match self.slots.cancel(key) {
            Cancelled::Reserved | Cancelled::BeforeArrival => return What::Ahead,
            Cancelled::Running { .. } => self.finish(key, TaskOutcome::Cancelled),
            Cancelled::Ended => {}
        }
        self.ask(key)
    }
}

// === impl World ===

impl World {
    /// An executor does what it is asked, in one step, and answers.
    pub fn serve(&mut self, message: &Message) {
        let key = key(message.task, message.attempt);
        let flaw = self.flaw;
        let executor = self.executor_mut(usize::from(message.executor));
        let what = match message.what {
            What::Reserve => executor.reserve(&key),
            What::Execute(with) => {
                let (what, first) = executor.execute(&key, with, flaw);
                if first {
                    self.started(message.task, message.attempt);
                }
                what
            }
            What::Ask => executor.ask(&key),
            What::Cancel => executor.cancel(&key),
            _ => return,
        };
        self.send(Message { what, ..message.clone() });
    }
}
