use super::super::fleet::Fleet;
use super::super::wait_queue::{QueuePosition, RuntimeId, WaitQueue};
use super::super::{ExecutorId, Ticket};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Strategy that assigns queued attempts to the slots of executors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Placement {
    /// One queue; its head goes to an executor as soon as a slot is free.
    #[default]
    Pull,
    /// One of two random executors is asked without knowing its free slots; a full one refuses.
    Optimistic,
    /// One queue; a slot is leased from the ledger, in the ledger's order, before the executor is asked.
    Semaphore,
    /// One queue per executor: an attempt joins the shorter of two, and an idle executor takes from the longest.
    Queue,
    /// One queue; the executor reserves a slot first, and then gets the attempt.
    Reserve,
}

/// Error for an unknown placement name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPlacement {
    given: String,
}

/// Steps by which an attempt gets its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Sent at once.
    Direct,
    /// Sent after a slot is leased.
    Leased,
    /// Sent after a slot is reserved.
    Reserved,
}

/// State that a strategy decides on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DispatchState {
    /// Queued attempts.
    pub queue: WaitQueue,
    /// Executors.
    pub fleet: Fleet,
    /// Open lease requests per runtime. Zero entries are removed.
    pub leasing: BTreeMap<RuntimeId, u32>,
}

/// Attempt to dispatch next, and its executor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Attempt to dispatch.
    pub ticket: Ticket,
    /// Target executors: the first one, or with leases any of them.
    pub executors: Vec<ExecutorId>,
}

/// A strategy. The dispatcher carries out each selection before it asks for the next, until `None`.
pub trait PlacementPolicy {
    /// Next selection, if any.
    fn next(
        &mut self,
        state: &DispatchState,
        now: Duration,
        random: &mut dyn FnMut() -> u64,
    ) -> Option<Selection>;

    /// Protocol of the selected attempts.
    fn protocol(&self) -> Protocol;

    /// An attempt was queued, for the first time or again.
    fn enqueued(&mut self, _ticket: Ticket, _place: QueuePosition, _runtime: RuntimeId) {}

    /// An attempt left the queue.
    fn dequeued(&mut self, _ticket: Ticket) {}

    /// An executor is up, or has changed.
    fn executor_available(&mut self) {}

    /// An executor does not answer any more.
    fn executor_lost(&mut self, _executor: ExecutorId) {}
}

// === impl Placement ===

impl Placement {
    /// Every placement, the default first.
    pub const ALL: [Self; 5] =
        [Self::Pull, Self::Optimistic, Self::Semaphore, Self::Queue, Self::Reserve];

    /// Name in configuration and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pull => "pull",
            Self::Optimistic => "optimistic",
            Self::Semaphore => "semaphore",
            Self::Queue => "queue",
            Self::Reserve => "reserve",
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Placement {
    type Err = UnknownPlacement;

    fn from_str(word: &str) -> Result<Self, UnknownPlacement> {
        let found = Self::ALL.into_iter().find(|placement| placement.name() == word);
        found.ok_or_else(|| UnknownPlacement { given: word.to_owned() })
    }
}

// === impl UnknownPlacement ===

impl fmt::Display for UnknownPlacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Placement::ALL.map(Placement::name).join(", ");
        write!(f, "{:?} is no placement: {names}", self.given)
    }
}

impl std::error::Error for UnknownPlacement {}
