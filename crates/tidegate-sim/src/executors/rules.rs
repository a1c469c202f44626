use super::crew::Crew;
use super::message::Key;
use crate::Violation;
use crate::agenda::Time;
use crate::scenario::Fault;
use std::collections::BTreeSet;
use std::time::Duration;
use tidegate_core::capacity::{ExecutorId, Ticket};
use tidegate_core::task::TaskState;

/// After the last fault: until a manager gives a silent executor up (a lease of 15 s and 2 s), with the question
/// that it has asked before that (10 s), the one for the tombstone (5 s) and a refusal that it still believes
/// (1 s).
const CALMED: Duration = Duration::from_secs(33);

/// What must always hold, whatever goes wrong. The first violation is kept.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) now: Time,
    pub(super) events: u64,
    found: Option<Violation>,
    /// The attempts at each task that were started.
    started: Vec<Vec<u32>>,
    ended: Vec<bool>,
    ended_count: u64,
    /// The last fence of each executor.
    fences: Vec<u64>,
    /// Attempts that a life of an executor has promised not to start.
    given_up: BTreeSet<(ExecutorId, u32, Key)>,
    /// No fault is on before the first and after the second.
    troubled: Option<(Time, Time)>,
    /// Only where one manager knows of all executors can it leave none idle.
    pub(super) idle_bound: Option<Time>,
    /// Tasks are started in the order in which they came.
    pub(super) in_order: bool,
    started_last: Option<Ticket>,
    /// Since when somebody waits.
    line_since: Option<Time>,
}

// === impl Rules ===

impl Rules {
    pub(super) fn new(executors: u32, faults: &[Fault]) -> Self {
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
            line_since: None,
        }
    }

    pub(super) fn violation(&mut self, invariant: &'static str, found: String) {
        let at = Duration::from_nanos(self.now);
        self.found.get_or_insert(Violation { invariant, found, at, events: self.events });
    }

    pub(super) fn verdict(&self) -> Result<(), Violation> {
        self.found.clone().map_or(Ok(()), Err)
    }

    pub(super) fn arrives(&mut self) {
        self.started.push(Vec::new());
        self.ended.push(false);
    }

    pub(super) fn all_ended(&self) -> bool {
        self.ended_count as usize == self.ended.len()
    }

    pub(super) fn unended(&self) -> u64 {
        self.ended.len() as u64 - self.ended_count
    }

    /// An executor starts an attempt.
    pub(super) fn starts(&mut self, at: ExecutorId, key: Key, fence: u64, crew: &Crew) {
        let name = format_args!("attempt {} of task {}", key.attempt, key.ticket.0).to_string();
        if let Some(occupancy) = crew.occupancy(at, self.now)
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
            return self.violation("only what was submitted is started", name);
        };
        let again = attempts.contains(&key.attempt);
        attempts.push(key.attempt);
        if again {
            self.violation("at most one start an attempt", name.clone());
        }
        if self.given_up.contains(&(at, crew.life(at), key)) {
            self.violation("what was given up is not started", name.clone());
        }
        if self.in_order && self.started_last.is_some_and(|last| last > key.ticket) {
            self.violation("nobody is overtaken in one line", name);
        }
        self.started_last = Some(key.ticket);
    }

    /// Whether an executor has started it at any time.
    fn was_started(&self, key: Key) -> bool {
        let attempts = self.started.get(key.ticket.0 as usize);
        attempts.is_some_and(|attempts| attempts.contains(&key.attempt))
    }

    /// A manager says that an executor has accepted it.
    pub(super) fn provisions(&mut self, key: Key) {
        if !self.was_started(key) {
            self.violation("provisioning only after an accepted submission", format!("{key:?}"));
        }
    }

    pub(super) fn gives_up(&mut self, at: ExecutorId, life: u32, key: Key) {
        if !self.was_started(key) {
            self.given_up.insert((at, life, key));
        }
    }

    /// A step is kept: it has to follow the one that is there.
    pub(super) fn keeps(&mut self, there: Option<&TaskState>, state: &TaskState) {
        if there.is_some_and(|there| there.version + 1 != state.version) {
            let versions = (there.map(|there| there.version), state.version);
            self.violation("each kept step follows the newest", format!("{versions:?}"));
        }
    }

    pub(super) fn ends(&mut self, ticket: Ticket) {
        match self.ended.get_mut(ticket.0 as usize) {
            Some(ended) if !*ended => {
                *ended = true;
                self.ended_count += 1;
            }
            _ => self.violation("a task ends exactly once", format!("task {}", ticket.0)),
        }
    }

    /// What a manager's line is after something has happened.
    pub(super) fn line(&mut self, waiting: usize) {
        match waiting {
            0 => self.line_since = None,
            _ => self.line_since = self.line_since.or(Some(self.now)),
        }
    }

    /// A slot must not stand idle beside somebody who waits, for longer than a manager needs to hear of it.
    pub(super) fn idle(&mut self, at: ExecutorId, crew: &Crew) {
        let Some(bound) = self.idle_bound else { return };
        let calm = match self.troubled {
            Some((first, _)) if self.now < first => 0,
            Some((_, after)) if self.now >= after => after,
            Some(_) => return,
            None => 0,
        };
        let (Some(free), Some(line)) = (crew.free_since(at), self.line_since) else { return };
        let idle = self.now - free.max(line).max(calm).min(self.now);
        if idle > bound {
            let idle = Duration::from_nanos(idle);
            self.violation(
                "no idle slot beside a waiter",
                format!("executor {} for {idle:?}", at.0),
            );
        }
    }
}
