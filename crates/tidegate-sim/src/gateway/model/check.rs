use super::request::State;
use super::settings::Settings;
use super::trackers::Trackers;
use crate::agenda::Time;
use crate::violation::Violation;
use std::time::Duration;
use tidegate_core::admission::{
    InFlightTracker, LoadState, MessagePriority, PriorityLimits, Reason, RetryBounds, Sharing,
};
use tidegate_core::routing::UpstreamLimit;

/// A broken invariant, without its time.
#[derive(Debug)]
pub struct Broken {
    invariant: &'static str,
    found: String,
}

/// Independent counts that the decisions are checked against.
#[derive(Debug)]
pub struct Checks {
    limits: PriorityLimits,
    sharing: Sharing,
    bounds: RetryBounds,
    limit: Option<u32>,
    /// Admitted requests that are not over, by priority.
    admitted: [u32; 4],
    admitted_ever: u64,
    /// Requests by state.
    states: [u64; State::COUNT],
    offered: u64,
    ended: u64,
    /// Requests with each upstream.
    with_upstream: Vec<usize>,
}

/// The verdict of the admission rule on each priority at one moment.
pub type Verdicts = [Result<(), Reason>; 4];

// === impl Broken ===

impl Broken {
    pub const LIMITS: &'static str = "a limit is never exceeded";
    pub const CRITICAL: &'static str = "Critical is never refused";
    pub const PERMITS: &'static str = "every permit ends exactly once";
    pub const RULE: &'static str = "admission follows its rule";
    pub const PRIORITY: &'static str = "no lower priority gets what a higher one would be refused";
    pub const CONCURRENCY: &'static str =
        "requests at an upstream never exceed its concurrency limit";
    pub const QUEUE: &'static str = "no queue is longer than its bound";
    pub const OVERTAKEN: &'static str =
        "no lower priority is dispatched while a higher one that could use the slot waits";
    pub const WAITERS: &'static str =
        "every queued request was served, displaced, expired or left, or waits";
    pub const IDLE: &'static str = "no request waits while a slot for it is free";
    pub const SLOTS: &'static str = "an upstream executes no more than it has slots";
    pub const ADVICE: &'static str = "a refusal says when to come back, within the bounds";
    pub const CONSERVED: &'static str = "every offered request has ended or is under way";
    pub const LATCHED: &'static str = "every limit that tightened loosens when the load is gone";

    pub fn new(invariant: &'static str, found: String) -> Self {
        Self { invariant, found }
    }

    pub fn at(self, now: Time, events: u64) -> Violation {
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
    pub fn new(settings: &Settings) -> Self {
        Self {
            limits: settings.limits,
            sharing: settings.sharing,
            bounds: settings.retry,
            limit: match settings.limit {
                UpstreamLimit::Fixed(limit) => Some(limit),
                UpstreamLimit::Auto(_) | UpstreamLimit::Off => None,
            },
            admitted: [0; 4],
            admitted_ever: 0,
            states: [0; State::COUNT],
            offered: 0,
            ended: 0,
            with_upstream: vec![0; usize::from(settings.upstreams.count)],
        }
    }

    /// Returns the verdict of the rule on each priority, without a change.
    pub fn verdicts(tracker: &InFlightTracker) -> Verdicts {
        MessagePriority::ALL.map(|priority| tracker.would_admit(priority))
    }

    /// Checks an admission.
    pub fn admitted(
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
        // When a request is admitted, the shared limit refuses no higher priority.
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

    /// Checks a refusal by a limit.
    pub fn refused(
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

    /// Counts the end of an admitted request.
    pub fn left(&mut self, priority: MessagePriority) {
        self.admitted[priority.index()] = self.admitted[priority.index()].saturating_sub(1);
    }

    /// Checks the retry advice of a refusal.
    pub fn told(&self, wait: Duration) -> Result<(), Broken> {
        unless(self.bounds.min <= wait && wait <= self.bounds.max, Broken::ADVICE, || {
            format!("{wait:?} is not within {:?} … {:?}", self.bounds.min, self.bounds.max)
        })
    }

    pub fn offered(&mut self, state: State) {
        self.offered += 1;
        self.states[state.index()] += 1;
    }

    pub fn moved(&mut self, from: State, to: State) {
        self.states[from.index()] = self.states[from.index()].saturating_sub(1);
        self.states[to.index()] += 1;
    }

    pub fn ended(&mut self, from: State) {
        self.ended += 1;
        self.states[from.index()] = self.states[from.index()].saturating_sub(1);
    }

    /// Counts a request that is sent to an upstream.
    pub fn sent(&mut self, upstream: usize) -> Result<(), Broken> {
        self.with_upstream[upstream] += 1;
        let count = self.with_upstream[upstream];
        let most = self.limit.map_or(usize::MAX, |limit| limit as usize);
        unless(count <= most, Broken::CONCURRENCY, || {
            format!("{count} requests are with upstream {upstream}, and {most} may be")
        })
    }

    pub fn back(&mut self, upstream: usize) {
        self.with_upstream[upstream] = self.with_upstream[upstream].saturating_sub(1);
    }

    /// Checks after every event that the tracker counts the admitted requests, and that none is lost.
    pub fn step(&self, tracker: &InFlightTracker) -> Result<(), Broken> {
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

    pub fn in_state(&self, state: State) -> u64 {
        self.states[state.index()]
    }

    pub fn with_upstream(&self, upstream: usize) -> usize {
        self.with_upstream[upstream]
    }

    /// Checks at intervals that every admitted request holds a permit or ended once.
    pub fn totals(&self, tracker: &InFlightTracker) -> Result<(), Broken> {
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

    /// Checks at the end that no permit is held and every load state is healthy.
    pub fn nothing_held(&self, trackers: &Trackers) -> Result<(), Broken> {
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

/// Returns `true` if the limit is 0, which refuses for ever as configured.
fn is_shut(tracker: &InFlightTracker) -> bool {
    tracker.limits().global_limit == 0
}
