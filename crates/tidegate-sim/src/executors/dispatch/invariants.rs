use crate::Violation;
use crate::agenda::Time;
use crate::executors::fleet::{Fleet, Key};
use crate::scenario::Fault;
use std::collections::BTreeSet;
use std::time::Duration;
use tidegate_core::capacity::{ExecutorId, Ticket};
use tidegate_core::task::TaskState;

/// After the last fault: until a manager gives a silent executor up (a lease of 15 s and 2 s), with the request
/// that it has asked before that (10 s), the one for the tombstone (5 s) and a refusal that it still believes
/// (1 s).
const CALMED: Duration = Duration::from_secs(33);

/// The invariants that hold under every fault. Keeps the first violation.
#[derive(Debug)]
pub struct Invariants {
    pub now: Time,
    pub events: u64,
    found: Option<Violation>,
    /// The attempts at each task that were started.
    started: Vec<Vec<u32>>,
    ended: Vec<bool>,
    ended_count: u64,
    /// The last fence of each executor.
    fences: Vec<u64>,
    /// Attempts that a incarnation of an executor has promised not to start.
    given_up: BTreeSet<(ExecutorId, u32, Key)>,
    /// No fault is on before the first and after the second.
    troubled: Option<(Time, Time)>,
    /// Only where one manager knows of all executors can it leave none idle.
    pub idle_bound: Option<Time>,
    /// Tasks are started in the order in which they came.
    pub in_order: bool,
    started_last: Option<Ticket>,
    /// The time since which the queue is not empty.
    queue_since: Option<Time>,
}

// === impl Invariants ===

impl Invariants {
    pub fn new(executors: u32, faults: &[Fault]) -> Self {
        let first = faults.iter().map(|fault| fault.from_s).reduce(f64::min);
        let last = faults.iter().map(|fault| fault.until_s).reduce(f64::max);
        let time = |s: f64| (s * 1e9) as Time;
        let calmed = CALMED.as_nanos() as Time;
        Self {
            now: 0,
            events: 0,
            found: None,
            started: Vec::new(),
            ended: Vec::new(),
            ended_count: 0,
            fences: vec![0; executors as usize],
            given_up: BTreeSet::new(),
            troubled: first.zip(last).map(|(first, last)| (time(first), time(last) + calmed)),
            idle_bound: None,
            in_order: false,
            started_last: None,
            queue_since: None,
        }
    }

    pub fn violation(&mut self, invariant: &'static str, found: String) {
        let at = Duration::from_nanos(self.now);
        self.found.get_or_insert(Violation { invariant, found, at, events: self.events });
    }

    pub fn verdict(&self) -> Result<(), Violation> {
        self.found.clone().map_or(Ok(()), Err)
    }

    pub fn arrives(&mut self) {
        self.started.push(Vec::new());
        self.ended.push(false);
    }

    pub fn all_ended(&self) -> bool {
        self.ended_count as usize == self.ended.len()
    }

    pub fn unended(&self) -> u64 {
        self.ended.len() as u64 - self.ended_count
    }

    /// Checks the start of an attempt at an executor.
    pub fn starts(&mut self, at: ExecutorId, key: Key, fence: u64, fleet: &Fleet) {
        let name = format_args!("attempt {} of task {}", key.attempt, key.ticket.0).to_string();
        if let Some(occupancy) = fleet.occupancy(at, self.now)
            && occupancy.running + occupancy.reserved > occupancy.max
        {
            self.violation("running + reserved ≤ slots", format!("{occupancy:?} with {name}"));
        }
        let last = self.fences.get(at.0 as usize).copied().unwrap_or(0);
        if fence <= last {
            self.violation("fences rise", format!("{fence} after {last} at executor {}", at.0));
        }
        if let Some(last) = self.fences.get_mut(at.0 as usize) {
            *last = fence;
        }
        let Some(attempts) = self.started.get_mut(key.ticket.0 as usize) else {
            return self.violation("only submitted tasks are started", name);
        };
        let again = attempts.contains(&key.attempt);
        attempts.push(key.attempt);
        if again {
            self.violation("at most one start an attempt", name.clone());
        }
        if self.given_up.contains(&(at, fleet.incarnation(at), key)) {
            self.violation("a cancelled attempt is not started", name.clone());
        }
        if self.in_order && self.started_last.is_some_and(|last| last > key.ticket) {
            self.violation("tasks of one queue start in order", name);
        }
        self.started_last = Some(key.ticket);
    }

    /// Returns `true` if an executor has ever started it.
    fn was_started(&self, key: Key) -> bool {
        let attempts = self.started.get(key.ticket.0 as usize);
        attempts.is_some_and(|attempts| attempts.contains(&key.attempt))
    }

    /// Checks that an executor has accepted an attempt that a manager counts as accepted.
    pub fn provisions(&mut self, key: Key) {
        if !self.was_started(key) {
            self.violation("provisioning only after an accepted submission", format!("{key:?}"));
        }
    }

    pub fn gives_up(&mut self, at: ExecutorId, incarnation: u32, key: Key) {
        if !self.was_started(key) {
            self.given_up.insert((at, incarnation, key));
        }
    }

    /// Checks that a persisted step follows the newest one.
    pub fn keeps(&mut self, there: Option<&TaskState>, state: &TaskState) {
        if there.is_some_and(|there| there.version + 1 != state.version) {
            let versions = (there.map(|there| there.version), state.version);
            self.violation("each persisted step follows the newest", format!("{versions:?}"));
        }
    }

    pub fn ends(&mut self, ticket: Ticket) {
        match self.ended.get_mut(ticket.0 as usize) {
            Some(ended) if !*ended => {
                *ended = true;
                self.ended_count += 1;
            }
            _ => self.violation("a task ends exactly once", format!("task {}", ticket.0)),
        }
    }

    /// Records the length of a manager's queue.
    pub fn queue(&mut self, waiting: usize) {
        match waiting {
            0 => self.queue_since = None,
            _ => self.queue_since = self.queue_since.or(Some(self.now)),
        }
    }

    /// Checks that no slot is idle beside a queued task for longer than a manager needs to learn of it.
    pub fn idle(&mut self, at: ExecutorId, fleet: &Fleet) {
        let Some(bound) = self.idle_bound else { return };
        let calm = match self.troubled {
            Some((first, _)) if self.now < first => 0,
            Some((_, after)) if self.now >= after => after,
            Some(_) => return,
            None => 0,
        };
        let (Some(free), Some(line)) = (fleet.free_since(at), self.queue_since) else { return };
        let idle = self.now - free.max(line).max(calm).min(self.now);
        if idle > bound {
            let idle = Duration::from_nanos(idle);
            self.violation(
                "no idle slot beside a queued task",
                format!("executor {} for {idle:?}", at.0),
            );
        }
    }
}
