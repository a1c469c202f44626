use super::request::State;
use super::settings::Settings;
use super::trackers::Trackers;
use crate::agenda::Time;
use crate::violation::Violation;
use std::time::Duration;
use tidegate_core::admission::{
    InFlightTracker, LoadState, MessagePriority, PriorityLimits, Reason, RetryBounds, Sharing,
};

/// Something that must never be, and was; when is added where that is known.
#[derive(Debug)]
pub(super) struct Broken {
    invariant: &'static str,
    found: String,
}

/// Counts of the simulation's own, which the decisions know nothing of and are held to.
#[derive(Debug)]
pub(super) struct Checks {
    limits: PriorityLimits,
    sharing: Sharing,
    bounds: RetryBounds,
    concurrency: usize,
    queue: usize,
    /// What is admitted and not over, by priority.
    admitted: [u32; 4],
    admitted_ever: u64,
    /// Requests by where they are.
    states: [u64; State::COUNT],
    offered: u64,
    ended: u64,
    /// Requests with each worker.
    with_worker: Vec<usize>,
}

/// What the rule says to each priority at one moment.
pub(super) type Verdicts = [Result<(), Reason>; 4];

// === impl Broken ===

impl Broken {
    pub(super) const LIMITS: &'static str = "a limit is never exceeded";
    pub(super) const CRITICAL: &'static str = "Critical is never refused";
    pub(super) const PERMITS: &'static str = "every permit ends exactly once";
    pub(super) const RULE: &'static str = "admission is what its rule says";
    pub(super) const PRIORITY: &'static str =
        "no lower priority gets what a higher one would be refused";
    pub(super) const CONCURRENCY: &'static str = "a worker is sent no more at once than it may be";
    pub(super) const QUEUE: &'static str = "no line is longer than its bound";
    pub(super) const PLACES: &'static str = "a worker works on no more than it has places";
    pub(super) const ADVICE: &'static str = "a refusal says when to come back, within the bounds";
    pub(super) const CONSERVED: &'static str = "what was offered has ended or is under way";
    pub(super) const LATCHED: &'static str = "what tightened loosens when the load is gone";

    pub(super) fn new(invariant: &'static str, found: String) -> Self {
        Self { invariant, found }
    }

    pub(super) fn at(self, now: Time, events: u64) -> Violation {
        let Self { invariant, found } = self;
        Violation { invariant, found, at: Duration::from_nanos(now), events }
    }
}

fn unless(
    holds: bool,
    invariant: &'static str,
    found: impl FnOnce() -> String,
) -> Result<(), Broken> {
    if holds { Ok(()) } else { Err(Broken::new(invariant, found())) }
}

// === impl Checks ===

impl Checks {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            limits: settings.limits,
            sharing: settings.sharing,
            bounds: settings.retry,
            concurrency: settings.concurrency,
            queue: settings.queue,
            admitted: [0; 4],
            admitted_ever: 0,
            states: [0; State::COUNT],
            offered: 0,
            ended: 0,
            with_worker: vec![0; usize::from(settings.workers.count)],
        }
    }

    /// Asks the rule, which changes nothing, for everyone.
    pub(super) fn verdicts(tracker: &InFlightTracker) -> Verdicts {
        MessagePriority::ALL.map(|priority| tracker.would_admit(priority))
    }

    /// One was let in.
    pub(super) fn admitted(
        &mut self,
        priority: MessagePriority,
        verdicts: &Verdicts,
    ) -> Result<(), Broken> {
        self.admitted[priority.index()] += 1;
        self.admitted_ever += 1;
        if priority == MessagePriority::Critical {
            return Ok(());
        }
        self.check_limits(priority)?;
        unless(verdicts[priority.index()].is_ok(), Broken::RULE, || {
            format!("{priority} was let in, and the rule refuses it")
        })?;
        // Whoever is let in, nobody more urgent would be refused by the limit that all of them share.
        let more_urgent = &MessagePriority::ALL[..priority.index()];
        let refused =
            more_urgent.iter().find(|higher| verdicts[higher.index()] == Err(Reason::GlobalLimit));
        unless(refused.is_none(), Broken::PRIORITY, || {
            format!("{priority} was let in where the global limit refuses {refused:?}")
        })
    }

    fn check_limits(&self, priority: MessagePriority) -> Result<(), Broken> {
        let [critical, high, normal, low] = self.admitted;
        let reserve = u32::from(self.limits.critical_reserve);
        let counted = critical.min(reserve) + high + normal + low;
        let global = u32::from(self.limits.global_limit);
        unless(counted <= global, Broken::LIMITS, || {
            format!("{counted} are admitted, and the global limit is {global}")
        })?;
        let own = |priority| u32::from(self.limits.of(priority));
        let most = match (self.sharing, priority) {
            (Sharing::Strict, _) | (Sharing::Borrow, MessagePriority::Low) => own(priority),
            (Sharing::Borrow, MessagePriority::Normal) => {
                own(priority) + own(MessagePriority::High)
            }
            (Sharing::Borrow, _) => global,
        };
        let count = self.admitted[priority.index()];
        unless(count <= most, Broken::LIMITS, || {
            format!("{count} of {priority} are admitted, and their limit is {most}")
        })
    }

    /// One was refused by a limit.
    pub(super) fn refused(
        &self,
        priority: MessagePriority,
        reason: Reason,
        verdicts: &Verdicts,
    ) -> Result<(), Broken> {
        unless(priority != MessagePriority::Critical, Broken::CRITICAL, || {
            format!("it was refused by the {reason}")
        })?;
        unless(verdicts[priority.index()].is_err(), Broken::RULE, || {
            format!("{priority} was refused, and the rule lets it in")
        })?;
        let count = self.admitted[priority.index()];
        let own = u32::from(self.limits.of(priority));
        unless(reason != Reason::PriorityLimit || count >= own, Broken::LIMITS, || {
            format!("{priority} was refused at its own limit of {own} with {count} admitted")
        })?;
        if reason == Reason::PriorityLimit {
            return Ok(());
        }
        let less_urgent = &MessagePriority::ALL[priority.index() + 1..];
        let let_in = less_urgent.iter().find(|lower| verdicts[lower.index()].is_ok());
        unless(let_in.is_none(), Broken::PRIORITY, || {
            format!("{priority} was refused by the global limit, which would let {let_in:?} in")
        })
    }

    /// One that was let in is over.
    pub(super) fn left(&mut self, priority: MessagePriority) {
        self.admitted[priority.index()] = self.admitted[priority.index()].saturating_sub(1);
    }

    /// A refusal says when to come back.
    pub(super) fn told(&self, wait: Duration) -> Result<(), Broken> {
        unless(self.bounds.min <= wait && wait <= self.bounds.max, Broken::ADVICE, || {
            format!("{wait:?} is not within {:?} … {:?}", self.bounds.min, self.bounds.max)
        })
    }

    pub(super) fn offered(&mut self, state: State) {
        self.offered += 1;
        self.states[state.index()] += 1;
    }

    pub(super) fn moved(&mut self, from: State, to: State) {
        self.states[from.index()] = self.states[from.index()].saturating_sub(1);
        self.states[to.index()] += 1;
    }

    pub(super) fn ended(&mut self, from: State) {
        self.ended += 1;
        self.states[from.index()] = self.states[from.index()].saturating_sub(1);
    }

    /// One more is with a worker.
    pub(super) fn sent(&mut self, worker: usize) -> Result<(), Broken> {
        self.with_worker[worker] += 1;
        let count = self.with_worker[worker];
        let most = self.concurrency;
        unless(most == 0 || count <= most, Broken::CONCURRENCY, || {
            format!("{count} requests are with worker {worker}, and {most} may be")
        })
    }

    pub(super) fn back(&mut self, worker: usize) {
        self.with_worker[worker] = self.with_worker[worker].saturating_sub(1);
    }

    pub(super) fn lined_up(&self, worker: usize, waiting: usize) -> Result<(), Broken> {
        unless(waiting <= self.queue, Broken::QUEUE, || {
            format!("{waiting} requests wait for worker {worker}, and {} may", self.queue)
        })
    }

    /// After every event: what the tracker counts is what is admitted, and nobody got lost.
    pub(super) fn step(&self, tracker: &InFlightTracker) -> Result<(), Broken> {
        let lanes = tracker.lanes();
        for (priority, count) in MessagePriority::ALL.into_iter().zip(self.admitted) {
            let counted = lanes.of(priority);
            unless(counted == count.min(u32::from(u16::MAX)), Broken::PERMITS, || {
                format!("{counted} of {priority} hold a permit, and {count} are under way")
            })?;
        }
        let under_way: u64 = self.states.iter().sum();
        unless(self.offered == self.ended + under_way, Broken::CONSERVED, || {
            format!(
                "{} were offered, {} ended, {under_way} are under way",
                self.offered, self.ended
            )
        })
    }

    pub(super) fn in_state(&self, state: State) -> u64 {
        self.states[state.index()]
    }

    pub(super) fn with_worker(&self, worker: usize) -> usize {
        self.with_worker[worker]
    }

    /// Now and then: everything that was ever admitted holds a permit, or ended once.
    pub(super) fn totals(&self, tracker: &InFlightTracker) -> Result<(), Broken> {
        let stats = tracker.stats();
        let finished: u64 = stats.finished.iter().map(|of| of.total()).sum();
        let known = finished + stats.total_in_flight;
        unless(known == self.admitted_ever, Broken::PERMITS, || {
            format!("{} were admitted, and {known} permits are known of", self.admitted_ever)
        })?;
        unless(stats.critical_shed == 0, Broken::CRITICAL, || {
            format!("{} were refused", stats.critical_shed)
        })
    }

    /// When all is over nothing is held, and nothing looks as if it were.
    pub(super) fn nothing_held(&self, trackers: &Trackers) -> Result<(), Broken> {
        for (whose, tracker) in trackers.all() {
            let held = tracker.lanes().total();
            unless(held == 0, Broken::PERMITS, || format!("{held} of {whose} are still held"))?;
            let state = tracker.load_state();
            unless(state == LoadState::Healthy || is_shut(tracker), Broken::LATCHED, || {
                format!("{whose} is {state} with nothing in flight")
            })?;
        }
        Ok(())
    }
}

/// A limit of nothing refuses for ever, as it was told to.
fn is_shut(tracker: &InFlightTracker) -> bool {
    tracker.limits().global_limit == 0
}
