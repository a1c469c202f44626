use super::{RuntimeId, Serves};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// An executor, by a number that its user gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExecutorId(pub u32);

/// What a manager believes of one executor. The executor has the last word.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExecutorBelief {
    /// All its slots.
    pub max: u32,
    /// What it can run.
    pub serves: Serves,
    /// Whether it answers.
    pub up: bool,
    /// Attempts of this manager that were sent there and are not over.
    pub ours: u32,
    /// Slots that others hold, as far as is known.
    pub foreign: u32,
    /// It refused, and said to come back then.
    pub full_until: Option<Duration>,
    /// Rises with everything this manager does there, so that a report can be told from one that is out of date.
    pub changes: u64,
}

/// The executors that a manager knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fleet {
    executors: BTreeMap<ExecutorId, ExecutorBelief>,
    /// Those that answer and are not full of our own. Few, when many wait: then nobody looks at all the others.
    roomy: BTreeSet<ExecutorId>,
    slots: u64,
}

// === impl ExecutorBelief ===

impl ExecutorBelief {
    /// Slots that are free, as far as is known.
    #[must_use]
    pub fn free(&self, now: Duration) -> u32 {
        match self.is_open(now) {
            true => self.max.saturating_sub(self.ours.saturating_add(self.foreign)),
            false => 0,
        }
    }

    fn slots_up(&self) -> u64 {
        if self.up { u64::from(self.max) } else { 0 }
    }

    /// Whether it may be asked now.
    #[must_use]
    pub fn is_open(&self, now: Duration) -> bool {
        self.up && self.full_until.is_none_or(|until| until <= now)
    }
}

// === impl Fleet ===

impl Fleet {
    /// An executor that answers; known before or not.
    pub fn up(&mut self, id: ExecutorId, max: u32, serves: Serves) {
        self.change(id, |belief| {
            if !belief.up {
                belief.full_until = None;
                belief.foreign = 0;
            }
            (belief.max, belief.serves, belief.up) = (max, serves, true);
        });
    }

    /// Changes what is believed of one. One of which nothing is known yet does not answer.
    pub(super) fn change(&mut self, id: ExecutorId, how: impl FnOnce(&mut ExecutorBelief)) {
        let belief = self.executors.entry(id).or_insert_with(|| ExecutorBelief {
            max: 0,
            serves: Serves::All,
            up: false,
            ours: 0,
            foreign: 0,
            full_until: None,
            changes: 0,
        });
        let slots_before = belief.slots_up();
        how(belief);
        self.slots = self.slots - slots_before + belief.slots_up();
        if belief.up && belief.ours < belief.max {
            self.roomy.insert(id);
        } else {
            self.roomy.remove(&id);
        }
    }

    /// One of them.
    #[must_use]
    pub fn get(&self, id: ExecutorId) -> Option<&ExecutorBelief> {
        self.executors.get(&id)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (ExecutorId, &ExecutorBelief)> {
        self.executors.iter().map(|(id, belief)| (*id, belief))
    }

    /// Those that answer and are not full of our own: the only ones that can have a free slot.
    pub(super) fn roomy(&self) -> impl Iterator<Item = (ExecutorId, &ExecutorBelief)> {
        self.roomy.iter().filter_map(|id| Some((*id, self.executors.get(id)?)))
    }

    /// Those that may be asked now and have this runtime.
    pub fn open(
        &self,
        runtime: RuntimeId,
        now: Duration,
    ) -> impl Iterator<Item = (ExecutorId, &ExecutorBelief)> {
        self.iter().filter(move |(_, it)| it.is_open(now) && it.serves.includes(runtime))
    }

    /// The slots of those that answer.
    #[must_use]
    pub fn slots(&self) -> u32 {
        u32::try_from(self.slots).unwrap_or(u32::MAX)
    }

    /// The free slots of those that answer, as far as is known.
    #[must_use]
    pub fn free(&self, now: Duration) -> u32 {
        self.roomy().fold(0, |sum, (_, it)| sum.saturating_add(it.free(now)))
    }

    /// When the first of those that refused may be asked again.
    #[must_use]
    pub fn next_open(&self, now: Duration) -> Option<Duration> {
        let up = self.executors.values().filter(|it| it.up);
        up.filter_map(|it| it.full_until).filter(|until| *until > now).min()
    }
}
