use super::message::{Key, Reply};
use crate::agenda::Time;
use crate::executors::ExecutorFlaw;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use tidegate_core::capacity::{ExecuteRefused, ExecutorId, ExecutorSlots, Occupancy};

/// The executors: the slots that ship, one each, and their executions.
#[derive(Debug)]
pub struct Fleet {
    executors: Vec<Executor>,
    /// The number of ended executions that an executor remembers.
    past_max: usize,
    lease: Duration,
    flaw: Option<ExecutorFlaw>,
}

#[derive(Debug)]
struct Executor {
    slots: ExecutorSlots,
    /// Faults that keep it down.
    down: u32,
    incarnation: u32,
    known: BTreeMap<Key, Execution>,
    /// Executions of these that are not over.
    runs: u32,
    ended: VecDeque<Key>,
    /// The time since which its slot is free.
    free_since: Option<Time>,
    expiry_planned: Option<Time>,
    /// Slots that were released more often than they were taken.
    given_back_twice: u32,
}

/// An attempt as its executor knows it.
#[derive(Clone, Copy, Debug)]
pub struct Execution {
    pub fence: u64,
    pub began: Time,
    pub ends: Time,
    /// Set when it is over: `true` if it was stopped.
    pub over: Option<bool>,
}

/// The result of a request to start an attempt.
#[derive(Clone, Copy, Debug)]
pub struct Begun {
    pub reply: Reply,
    /// True if it is to be started now.
    pub first: bool,
}

// === impl Fleet ===

impl Fleet {
    pub fn new(
        executors: u32,
        past_max: usize,
        lease: Duration,
        flaw: Option<ExecutorFlaw>,
    ) -> Self {
        let one = || Executor::new(ExecutorSlots::new(1, 0).with_past_max(past_max), 0, 0);
        Self { executors: (0..executors).map(|_| one()).collect(), past_max, lease, flaw }
    }

    fn one(&mut self, at: ExecutorId) -> Option<&mut Executor> {
        self.executors.get_mut(at.0 as usize)
    }

    pub fn is_up(&self, at: ExecutorId) -> bool {
        self.executors.get(at.0 as usize).is_some_and(|one| one.down == 0)
    }

    pub fn incarnation(&self, at: ExecutorId) -> u32 {
        self.executors.get(at.0 as usize).map_or(0, |one| one.incarnation)
    }

    pub fn len(&self) -> u32 {
        self.executors.len() as u32
    }

    pub fn occupancy(&self, at: ExecutorId, now: Time) -> Option<Occupancy> {
        let one = self.executors.get(at.0 as usize)?;
        let mut occupancy = one.slots.occupancy(Duration::from_nanos(now));
        // The running executions, not the count of the slots.
        occupancy.running = occupancy.running.max(one.runs);
        Some(occupancy)
    }

    /// Returns the time since which its slot is free; `None` when it is not, or the executor is down.
    pub fn free_since(&self, at: ExecutorId) -> Option<Time> {
        let one = self.executors.get(at.0 as usize)?;
        one.free_since.filter(|_| one.down == 0)
    }

    pub fn execute(&mut self, at: ExecutorId, key: Key, takes: Time, now: Time) -> Begun {
        let lease = self.lease;
        let refused = |reply| Begun { reply, first: false };
        let (Some(one), Some(name)) = (self.one(at), key.name()) else {
            return refused(Reply::Gone);
        };
        let clock = Duration::from_nanos(now);
        let granted = one.slots.execute(&name, 0, None, Some(lease), clock);
        let (fence, first) = match granted {
            Ok(granted) => (granted.fence, granted.first),
            Err(ExecuteRefused::Full) if one.given_back_twice > 0 => {
                one.given_back_twice -= 1;
                (one.slots.running().map(|(_, fence)| fence).max().unwrap_or(0) + 1, true)
            }
            Err(ExecuteRefused::Full) => return refused(Reply::Full),
            Err(_) => return refused(Reply::Gone),
        };
        if first {
            let execution = Execution { fence, began: now, ends: now + takes, over: None };
            one.known.insert(key, execution);
            one.runs += 1;
        }
        one.look(now);
        Begun { reply: Reply::Taken { fence }, first }
    }

    pub fn reserve(&mut self, at: ExecutorId, key: Key, ttl: Duration, now: Time) -> Reply {
        let (Some(one), Some(name)) = (self.one(at), key.name()) else { return Reply::Gone };
        let held = one.slots.reserve(&name, ttl, Duration::from_nanos(now));
        one.look(now);
        held.map_or(Reply::Full, |held| Reply::Taken { fence: held.fence })
    }

    /// Returns an attempt as the executor knows it, and renews its lease.
    pub fn follow(&mut self, at: ExecutorId, key: Key, now: Time) -> Option<Execution> {
        let flaw = self.flaw;
        let one = self.one(at)?;
        let execution = *one.known.get(&key)?;
        one.slots.renew(&key.name()?, Some(execution.fence), Duration::from_nanos(now));
        if execution.over.is_some() && flaw == Some(ExecutorFlaw::GivesBackTwice) {
            one.given_back_twice += 1;
        }
        Some(execution)
    }

    pub fn delete(&mut self, at: ExecutorId, key: Key, now: Time) {
        if self.flaw == Some(ExecutorFlaw::ForgetsTombstones) {
            return;
        }
        if let (Some(one), Some(name)) = (self.one(at), key.name()) {
            one.slots.cancel(&name);
            one.look(now);
        }
    }

    /// An execution is over, and its slot free; how long it ran. `None` when it was over before, or with another
    /// incarnation of the executor.
    pub fn finish(
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

    /// Returns the attempts whose lease has expired: they have to be stopped.
    pub fn expire(&mut self, at: ExecutorId, now: Time) -> Vec<Key> {
        let Some(one) = self.one(at) else { return Vec::new() };
        one.expiry_planned = None;
        let expired = one.slots.expire(Duration::from_nanos(now));
        one.look(now);
        expired.iter().filter_map(|(name, _)| Key::named(name)).collect()
    }

    /// Returns the time at which a timer has to expire leases, if none is planned before.
    pub fn plan_expiry(&mut self, at: ExecutorId) -> Option<Time> {
        let one = self.one(at)?;
        let next = one.slots.next_expiry()?.as_nanos() as Time;
        if one.expiry_planned.is_some_and(|planned| planned <= next) {
            return None;
        }
        one.expiry_planned = Some(next);
        Some(next)
    }

    /// Kills an executor and returns the attempts that ran there. `None` when it was already down.
    pub fn kill(&mut self, at: ExecutorId) -> Option<Vec<(Key, Execution)>> {
        let one = self.one(at)?;
        one.down += 1;
        if one.down > 1 {
            return None;
        }
        one.runs = 0;
        let known = std::mem::take(&mut one.known);
        Some(known.into_iter().filter(|(_, execution)| execution.over.is_none()).collect())
    }

    /// Restarts an executor without state, and with fences above the earlier ones: they start at the clock.
    pub fn revive(&mut self, at: ExecutorId, now: Time) {
        let past_max = self.past_max;
        let Some(one) = self.one(at) else { return };
        one.down = one.down.saturating_sub(1);
        if one.down == 0 {
            let slots = ExecutorSlots::new(1, now / 1_000).with_past_max(past_max);
            *one = Executor::new(slots, one.incarnation + 1, now);
        }
    }
}

// === impl Executor ===

impl Executor {
    fn new(slots: ExecutorSlots, incarnation: u32, now: Time) -> Self {
        Self {
            slots,
            down: 0,
            incarnation,
            known: BTreeMap::new(),
            runs: 0,
            ended: VecDeque::new(),
            free_since: Some(now),
            expiry_planned: None,
            given_back_twice: 0,
        }
    }

    /// Updates the time since which its slot is free.
    fn look(&mut self, now: Time) {
        let free = self.slots.occupancy(Duration::from_nanos(now)).free() > 0;
        self.free_since = free.then(|| self.free_since.unwrap_or(now));
    }
}
