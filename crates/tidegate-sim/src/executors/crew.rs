use super::ExecutorFlaw;
use super::message::{Key, Told};
use crate::agenda::Time;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use tidegate_core::capacity::{ExecuteRefused, ExecutorId, ExecutorSlots, Occupancy};

/// The executors: the slots that ship, one each, and what runs in them.
#[derive(Debug)]
pub(super) struct Crew {
    executors: Vec<One>,
    /// How many executions an executor remembers that are over.
    past_max: usize,
    lease: Duration,
    flaw: Option<ExecutorFlaw>,
}

#[derive(Debug)]
struct One {
    slots: ExecutorSlots,
    /// Faults that keep it down.
    down: u32,
    life: u32,
    known: BTreeMap<Key, Execution>,
    /// How many of them are not over.
    runs: u32,
    ended: VecDeque<Key>,
    /// Since when its slot is free.
    free_since: Option<Time>,
    expiry_planned: Option<Time>,
    /// Slots that were given back more often than they were taken.
    given_back_twice: u32,
}

/// What an executor knows of an attempt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Execution {
    pub(super) fence: u64,
    pub(super) began: Time,
    pub(super) ends: Time,
    /// It is over; whether it was stopped.
    pub(super) over: Option<bool>,
}

/// What came of a request to start something.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    pub(super) told: Told,
    /// It is to be started now.
    pub(super) first: bool,
}

// === impl Crew ===

impl Crew {
    pub(super) fn new(
        executors: u32,
        past_max: usize,
        lease: Duration,
        flaw: Option<ExecutorFlaw>,
    ) -> Self {
        let one = || One::new(ExecutorSlots::new(1, 0).remembering(past_max), 0, 0);
        Self { executors: (0..executors).map(|_| one()).collect(), past_max, lease, flaw }
    }

    fn one(&mut self, at: ExecutorId) -> Option<&mut One> {
        self.executors.get_mut(at.0 as usize)
    }

    pub(super) fn is_up(&self, at: ExecutorId) -> bool {
        self.executors.get(at.0 as usize).is_some_and(|one| one.down == 0)
    }

    pub(super) fn life(&self, at: ExecutorId) -> u32 {
        self.executors.get(at.0 as usize).map_or(0, |one| one.life)
    }

    pub(super) fn len(&self) -> u32 {
        self.executors.len() as u32
    }

    pub(super) fn occupancy(&self, at: ExecutorId, now: Time) -> Option<Occupancy> {
        let one = self.executors.get(at.0 as usize)?;
        let mut occupancy = one.slots.occupancy(Duration::from_nanos(now));
        // What really runs, not what its books say.
        occupancy.running = occupancy.running.max(one.runs);
        Some(occupancy)
    }

    /// Since when its slot is free; `None` when it is not, or nobody is there.
    pub(super) fn free_since(&self, at: ExecutorId) -> Option<Time> {
        let one = self.executors.get(at.0 as usize)?;
        one.free_since.filter(|_| one.down == 0)
    }

    pub(super) fn execute(&mut self, at: ExecutorId, key: Key, takes: Time, now: Time) -> Begun {
        let lease = self.lease;
        let refused = |told| Begun { told, first: false };
        let (Some(one), Some(name)) = (self.one(at), key.name()) else {
            return refused(Told::Gone);
        };
        let clock = Duration::from_nanos(now);
        let granted = one.slots.execute(&name, 0, None, Some(lease), clock);
        let (fence, first) = match granted {
            Ok(granted) => (granted.fence, granted.first),
            Err(ExecuteRefused::Full) if one.given_back_twice > 0 => {
                one.given_back_twice -= 1;
                (one.slots.running().map(|(_, fence)| fence).max().unwrap_or(0) + 1, true)
            }
            Err(ExecuteRefused::Full) => return refused(Told::Full),
            Err(_) => return refused(Told::Gone),
        };
        if first {
            let execution = Execution { fence, began: now, ends: now + takes, over: None };
            one.known.insert(key, execution);
            one.runs += 1;
        }
        one.look(now);
        Begun { told: Told::Taken { fence }, first }
    }

    pub(super) fn reserve(&mut self, at: ExecutorId, key: Key, ttl: Duration, now: Time) -> Told {
        let (Some(one), Some(name)) = (self.one(at), key.name()) else { return Told::Gone };
        let held = one.slots.reserve(&name, ttl, Duration::from_nanos(now));
        one.look(now);
        held.map_or(Told::Full, |held| Told::Taken { fence: held.fence })
    }

    /// What it knows of an attempt. Asking keeps its lease.
    pub(super) fn follow(&mut self, at: ExecutorId, key: Key, now: Time) -> Option<Execution> {
        let flaw = self.flaw;
        let one = self.one(at)?;
        let execution = *one.known.get(&key)?;
        one.slots.renew(&key.name()?, Some(execution.fence), Duration::from_nanos(now));
        if execution.over.is_some() && flaw == Some(ExecutorFlaw::GivesBackTwice) {
            one.given_back_twice += 1;
        }
        Some(execution)
    }

    pub(super) fn delete(&mut self, at: ExecutorId, key: Key, now: Time) {
        if self.flaw == Some(ExecutorFlaw::ForgetsTombstones) {
            return;
        }
        if let (Some(one), Some(name)) = (self.one(at), key.name()) {
            one.slots.cancel(&name);
            one.look(now);
        }
    }

    /// An execution is over, and its slot free; how long it ran. `None` when it was over before, or with another
    /// life of the executor.
    pub(super) fn finish(
        &mut self,
        at: ExecutorId,
        key: Key,
        stopped: bool,
        now: Time,
    ) -> Option<Execution> {
        let past_max = self.past_max;
        let one = self.one(at)?;
        let execution = one.known.get_mut(&key).filter(|execution| execution.over.is_none())?;
        execution.over = Some(stopped);
        execution.ends = now;
        let execution = *execution;
        one.slots.finish(&key.name()?, execution.fence);
        one.runs -= 1;
        one.ended.push_back(key);
        while one.ended.len() > past_max {
            if let Some(oldest) = one.ended.pop_front() {
                one.known.remove(&oldest);
            }
        }
        one.look(now);
        Some(execution)
    }

    /// What nobody has asked for within its lease: it has to be stopped.
    pub(super) fn expire(&mut self, at: ExecutorId, now: Time) -> Vec<Key> {
        let Some(one) = self.one(at) else { return Vec::new() };
        one.expiry_planned = None;
        let expired = one.slots.expire(Duration::from_nanos(now));
        one.look(now);
        expired.iter().filter_map(|(name, _)| Key::named(name)).collect()
    }

    /// When a timer has to look for what has expired, if none does before.
    pub(super) fn plan_expiry(&mut self, at: ExecutorId) -> Option<Time> {
        let one = self.one(at)?;
        let next = one.slots.next_expiry()?.as_nanos() as Time;
        if one.expiry_planned.is_some_and(|planned| planned <= next) {
            return None;
        }
        one.expiry_planned = Some(next);
        Some(next)
    }

    /// It is killed with all that runs there, which is given back. `None` when it was down already.
    pub(super) fn kill(&mut self, at: ExecutorId) -> Option<Vec<(Key, Execution)>> {
        let one = self.one(at)?;
        one.down += 1;
        if one.down > 1 {
            return None;
        }
        one.runs = 0;
        let known = std::mem::take(&mut one.known);
        Some(known.into_iter().filter(|(_, execution)| execution.over.is_none()).collect())
    }

    /// It comes back with nothing, and with fences above those of before: they start at the clock.
    pub(super) fn revive(&mut self, at: ExecutorId, now: Time) {
        let past_max = self.past_max;
        let Some(one) = self.one(at) else { return };
        one.down = one.down.saturating_sub(1);
        if one.down == 0 {
            let slots = ExecutorSlots::new(1, now / 1_000).remembering(past_max);
            *one = One::new(slots, one.life + 1, now);
        }
    }
}

// === impl One ===

impl One {
    fn new(slots: ExecutorSlots, life: u32, now: Time) -> Self {
        Self {
            slots,
            down: 0,
            life,
            known: BTreeMap::new(),
            runs: 0,
            ended: VecDeque::new(),
            free_since: Some(now),
            expiry_planned: None,
            given_back_twice: 0,
        }
    }

    /// Whether its slot is free now, and since when.
    fn look(&mut self, now: Time) {
        let free = self.slots.occupancy(Duration::from_nanos(now)).free() > 0;
        self.free_since = free.then(|| self.free_since.unwrap_or(now));
    }
}
