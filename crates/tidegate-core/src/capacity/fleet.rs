use super::{ExecutorRuntimes, RuntimeId};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Number of an executor, chosen by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExecutorId(pub u32);

/// State of one executor as its manager knows it. The executor itself decides.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExecutorState {
    /// Number of slots.
    pub max: u32,
    /// Runtimes it can run.
    pub serves: ExecutorRuntimes,
    /// True while it answers.
    pub up: bool,
    /// Attempts of this manager at the executor that have not ended.
    pub own: u32,
    /// Slots that others hold, as last reported.
    pub foreign: u32,
    /// End of the pause after a refusal.
    pub full_until: Option<Duration>,
    /// Rises with every change this manager causes, so that an outdated report can be recognised.
    pub changes: u64,
}

/// Executors known to a manager.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fleet {
    executors: BTreeMap<ExecutorId, ExecutorState>,
    /// Executors that are up and not filled by this manager's own attempts. Under load they are few, and only they
    /// are scanned.
    with_room: BTreeSet<ExecutorId>,
    slots: u64,
}

// === impl ExecutorState ===

impl ExecutorState {
    /// Free slots, as last known.
    #[must_use]
    pub fn free(&self, now: Duration) -> u32 {
        match self.is_open(now) {
            true => self.max.saturating_sub(self.own.saturating_add(self.foreign)),
            false => 0,
        }
    }

    fn slots_up(&self) -> u64 {
        if self.up { u64::from(self.max) } else { 0 }
    }

    /// True if the executor may be asked now.
    #[must_use]
    pub fn is_open(&self, now: Duration) -> bool {
        self.up && self.full_until.is_none_or(|until| until <= now)
    }
}

// === impl Fleet ===

impl Fleet {
    /// Marks an executor as up, with its slots and runtimes.
    pub fn up(&mut self, id: ExecutorId, max: u32, serves: ExecutorRuntimes) {
        self.change(id, |executor| {
            if !executor.up {
                executor.full_until = None;
                executor.foreign = 0;
            }
            (executor.max, executor.serves, executor.up) = (max, serves, true);
        });
    }

    /// Changes the state of one executor. An unknown one starts as down.
    pub(super) fn change(&mut self, id: ExecutorId, how: impl FnOnce(&mut ExecutorState)) {
        let executor = self.executors.entry(id).or_insert_with(|| ExecutorState {
            max: 0,
            serves: ExecutorRuntimes::All,
            up: false,
            own: 0,
            foreign: 0,
            full_until: None,
            changes: 0,
        });
        let slots_before = executor.slots_up();
        how(executor);
        self.slots = self.slots - slots_before + executor.slots_up();
        if executor.up && executor.own < executor.max {
            self.with_room.insert(id);
        } else {
            self.with_room.remove(&id);
        }
    }

    /// State of one executor.
    #[must_use]
    pub fn get(&self, id: ExecutorId) -> Option<&ExecutorState> {
        self.executors.get(&id)
    }

    /// All executors.
    pub fn iter(&self) -> impl Iterator<Item = (ExecutorId, &ExecutorState)> {
        self.executors.iter().map(|(id, executor)| (*id, executor))
    }

    /// Executors that are up and not filled by own attempts: the only ones that can have a free slot.
    pub(super) fn with_room(&self) -> impl Iterator<Item = (ExecutorId, &ExecutorState)> {
        self.with_room.iter().filter_map(|id| Some((*id, self.executors.get(id)?)))
    }

    /// Executors that may be asked now and have this runtime.
    pub fn open(
        &self,
        runtime: RuntimeId,
        now: Duration,
    ) -> impl Iterator<Item = (ExecutorId, &ExecutorState)> {
        self.iter()
            .filter(move |(_, executor)| executor.is_open(now) && executor.serves.includes(runtime))
    }

    /// Slots of all executors that are up.
    #[must_use]
    pub fn slots(&self) -> u32 {
        u32::try_from(self.slots).unwrap_or(u32::MAX)
    }

    /// Free slots of all executors that are up, as last known.
    #[must_use]
    pub fn free(&self, now: Duration) -> u32 {
        self.with_room().fold(0, |sum, (_, executor)| sum.saturating_add(executor.free(now)))
    }

    /// Earliest end of a pause after a refusal.
    #[must_use]
    pub fn next_open(&self, now: Duration) -> Option<Duration> {
        let up = self.executors.values().filter(|executor| executor.up);
        up.filter_map(|executor| executor.full_until).filter(|until| *until > now).min()
    }
}
