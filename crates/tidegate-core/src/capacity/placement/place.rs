use super::super::fleet::Fleet;
use super::super::line::{Place as PlaceInLine, RuntimeId, WaitingLine};
use super::super::{ExecutorId, Ticket};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// How waiting attempts come to the slots of executors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Placement {
    /// One line; executors are granted its head as their slots free.
    #[default]
    Pull,
    /// The better of two executors is asked without knowing whether it has room; it refuses when it has none.
    Optimistic,
    /// One line; a slot is taken from the ledger, in the ledger's order, before the executor is asked.
    Semaphore,
    /// A line for each executor: join the shorter of two; whoever is idle takes from the longest.
    Queue,
    /// One line; the executor keeps a slot first, and is then sent the attempt for it.
    Reserve,
}

/// A word that names no placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPlacement {
    given: String,
}

/// By which steps an attempt gets its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// It is sent.
    Direct,
    /// A slot is leased, then it is sent.
    Leased,
    /// A slot is reserved, then it is sent.
    Reserved,
}

/// What strategies look at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    /// Who waits.
    pub line: WaitingLine,
    /// For whom.
    pub fleet: Fleet,
    /// How many ask the ledger, by what they want. None is zero.
    pub leasing: BTreeMap<RuntimeId, u32>,
}

/// Who goes where next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Who.
    pub ticket: Ticket,
    /// Where: the first, or with leases any of them.
    pub executors: Vec<ExecutorId>,
}

/// A strategy. It is asked again until it says `None`, and what it says is done before it is asked again.
pub trait Place {
    /// Who goes where next.
    fn next(
        &mut self,
        world: &World,
        now: Duration,
        chance: &mut dyn FnMut() -> u64,
    ) -> Option<Step>;

    /// By which steps.
    fn protocol(&self) -> Protocol;

    /// A ticket has come to the line, or back to it.
    fn came(&mut self, _ticket: Ticket, _place: PlaceInLine, _runtime: RuntimeId) {}

    /// A ticket has left the line.
    fn forget(&mut self, _ticket: Ticket) {}

    /// An executor answers, or is not what it was.
    fn found_executor(&mut self) {}

    /// An executor does not answer any more.
    fn lost_executor(&mut self, _executor: ExecutorId) {}
}

// === impl Placement ===

impl Placement {
    /// Every placement, the default first.
    pub const ALL: [Self; 5] =
        [Self::Pull, Self::Optimistic, Self::Semaphore, Self::Queue, Self::Reserve];

    /// The word for it.
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
