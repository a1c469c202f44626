use crate::agenda::Time;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use tidegate_core::admission::MessagePriority::Normal;
use tidegate_core::capacity::{
    Dispatcher, ExecutorId, Placement, RuntimeId, Serves, SlotLease, Ticket, WaitEstimate,
};
use tidegate_core::task::{TaskSpec, TaskState};

pub(super) const RUNTIME: RuntimeId = RuntimeId(0);
/// What a full executor says.
pub(super) const RETRY_AFTER: Duration = Duration::from_secs(1);
/// How long a slot is kept for a task that has yet to come, unless leases are shorter.
pub(super) const RESERVED_FOR: Duration = Duration::from_secs(30);

/// A manager: what it knows, which is gone when it is killed, and what its store has.
pub(super) struct Manager {
    pub(super) dispatcher: Dispatcher,
    pub(super) estimate: WaitEstimate,
    pub(super) wake: Option<Time>,
    pub(super) book: BTreeMap<Ticket, Entry>,
    /// Executors that owe an answer to how full they are.
    pub(super) asked: Vec<bool>,
    /// The newest state of each task that is not over, as it is kept.
    pub(super) store: BTreeMap<Ticket, TaskState>,
    /// Which life it is.
    pub(super) life: u32,
    /// Faults that keep it down.
    pub(super) down: u32,
    /// Tasks that were to be handed in while it was.
    pub(super) outside: VecDeque<Ticket>,
}

/// A task of this manager's.
pub(super) struct Entry {
    pub(super) state: TaskState,
    pub(super) drive: Option<Drive>,
    pub(super) lease: Option<SlotLease>,
}

/// An attempt from the order to send it until its manager knows that it is over.
#[derive(Clone, Copy)]
pub(super) struct Drive {
    pub(super) at: ExecutorId,
    pub(super) ordered: Time,
    /// When its executor last knew of it.
    pub(super) heard: Time,
}

// === impl Manager ===

impl Manager {
    pub(super) fn new(placement: Placement) -> Self {
        Self {
            dispatcher: Dispatcher::new(placement),
            estimate: WaitEstimate::default(),
            wake: None,
            book: BTreeMap::new(),
            asked: Vec::new(),
            store: BTreeMap::new(),
            life: 0,
            down: 0,
            outside: VecDeque::new(),
        }
    }

    /// All executors are there from the beginning.
    pub(super) fn meets_all(&mut self, executors: u32) {
        self.asked = vec![false; executors as usize];
        for id in 0..executors {
            self.dispatcher.executor_up(ExecutorId(id), 1, Serves::All);
        }
    }

    /// Takes a task: it is kept, and waits. With how long it is told that it will.
    pub(super) fn submit(&mut self, ticket: Ticket, now: Duration) -> Option<Duration> {
        let state = TaskState::submitted("manager", now.as_millis() as u64);
        self.store.insert(ticket, state.clone());
        self.book.insert(ticket, Entry { state, drive: None, lease: None });
        self.dispatcher.submit(ticket, Normal, RUNTIME);
        let fleet = self.dispatcher.fleet();
        let ahead = self.dispatcher.ahead_of(ticket).unwrap_or_default();
        self.estimate.wait(ahead, fleet.slots(), fleet.free(now))
    }

    /// All that it knew is gone; the store is not.
    pub(super) fn forgets(&mut self, placement: Placement) {
        let store = std::mem::take(&mut self.store);
        let outside = std::mem::take(&mut self.outside);
        let asked = vec![false; self.asked.len()];
        let (life, down) = (self.life + 1, self.down);
        *self = Self { store, outside, asked, life, down, ..Self::new(placement) };
    }
}

/// What every task here is: only its time differs.
pub(super) fn spec() -> TaskSpec {
    TaskSpec {
        runtime: String::new(),
        code: "work".to_owned(),
        args: Vec::new(),
        env: BTreeMap::new(),
        priority: Normal,
        timeout_ms: 86_400_000,
        retries: 0,
    }
}
