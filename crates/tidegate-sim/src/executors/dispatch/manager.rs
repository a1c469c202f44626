use crate::agenda::Time;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use tidegate_core::admission::MessagePriority::Normal;
use tidegate_core::capacity::{
    Dispatcher, ExecutorId, ExecutorRuntimes, Placement, RuntimeId, SlotLease, Ticket, WaitEstimate,
};
use tidegate_core::task::{TaskSpec, TaskState};

pub const RUNTIME: RuntimeId = RuntimeId(0);
/// The Retry-After of a full executor.
pub const RETRY_AFTER: Duration = Duration::from_secs(1);
/// The time to live of a reservation, unless leases are shorter.
pub const RESERVED_FOR: Duration = Duration::from_secs(30);

/// A manager: its state, which is lost when it is killed, and its store, which is not.
pub struct Manager {
    pub dispatcher: Dispatcher,
    pub estimate: WaitEstimate,
    pub wake: Option<Time>,
    pub book: BTreeMap<Ticket, Entry>,
    /// Executors whose reply to a capacity request is pending.
    pub asked: Vec<bool>,
    /// The newest persisted state of each task that is not over.
    pub store: BTreeMap<Ticket, TaskState>,
    /// The number of the incarnation.
    pub incarnation: u32,
    /// Faults that keep it down.
    pub down: u32,
    /// Tasks that were submitted while it was down.
    pub outside: VecDeque<Ticket>,
}

/// A task of this manager's.
pub struct Entry {
    pub state: TaskState,
    pub drive: Option<Drive>,
    pub lease: Option<SlotLease>,
}

/// An attempt from the order to send it until its manager knows that it is over.
#[derive(Clone, Copy)]
pub struct Drive {
    pub at: ExecutorId,
    pub ordered: Time,
    /// The time of the executor's last confirmation.
    pub heard: Time,
}

// === impl Manager ===

impl Manager {
    pub fn new(placement: Placement) -> Self {
        Self {
            dispatcher: Dispatcher::new(placement),
            estimate: WaitEstimate::default(),
            wake: None,
            book: BTreeMap::new(),
            asked: Vec::new(),
            store: BTreeMap::new(),
            incarnation: 0,
            down: 0,
            outside: VecDeque::new(),
        }
    }

    /// Registers all executors.
    pub fn meets_all(&mut self, executors: u32) {
        self.asked = vec![false; executors as usize];
        for id in 0..executors {
            self.dispatcher.executor_up(ExecutorId(id), 1, ExecutorRuntimes::All);
        }
    }

    /// Accepts a task: persists and queues it. Returns the estimated wait.
    pub fn submit(&mut self, ticket: Ticket, now: Duration) -> Option<Duration> {
        let state = TaskState::submitted("manager", now.as_millis() as u64);
        self.store.insert(ticket, state.clone());
        self.book.insert(ticket, Entry { state, drive: None, lease: None });
        self.dispatcher.submit(ticket, Normal, RUNTIME);
        let fleet = self.dispatcher.fleet();
        let ahead = self.dispatcher.ahead_of(ticket).unwrap_or_default();
        self.estimate.wait(ahead, fleet.slots(), fleet.free(now))
    }

    /// Drops the state, except for the store.
    pub fn forgets(&mut self, placement: Placement) {
        let store = std::mem::take(&mut self.store);
        let outside = std::mem::take(&mut self.outside);
        let asked = vec![false; self.asked.len()];
        let (incarnation, down) = (self.incarnation + 1, self.down);
        *self = Self { store, outside, asked, incarnation, down, ..Self::new(placement) };
    }
}

/// Returns the specification of every task; only their times differ.
pub fn spec() -> TaskSpec {
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
