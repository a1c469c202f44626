use super::advice::told;
use super::ask::Ask;
use super::check::Broken;
use super::record::Record;
use super::request::HeldPermit;
use super::settings::Settings;
use super::trackers::Trackers;
use crate::agenda::Time;
use crate::gateway::Flaw;
use std::time::Duration;
use tidegate_core::admission::InFlightTracker;
use tidegate_core::limit::UpstreamOutcome;
use tidegate_core::routing::{
    Answer, Availability, AvailabilityEntry, BusyThresholds, Demand, ExpectedWait, Latency,
    LoadReport, OnSilence, Pick, Pool, RouteError, RouteQuery, RoutingPolicy, ServiceEstimator,
    Standing, UpstreamAccount, UpstreamLimit, UpstreamTicket,
};

/// The age at which a load report expires.
const REPORT_TTL: Duration = Duration::from_secs(5);

/// The gateway's router: the policy that ships, over upstreams in the simulator's memory.
#[derive(Debug)]
pub struct Fleet<'a> {
    policy: RoutingPolicy,
    upstreams: Members<'a>,
    service: ServiceEstimator,
    needs_reports: bool,
}

/// The upstreams as the gateway knows them.
#[derive(Debug)]
struct Members<'a> {
    all: Vec<Member<'a>>,
    thresholds: BusyThresholds,
    availability: Availability,
    demand: Demand,
    plant: Option<Flaw>,
}

#[derive(Debug)]
struct Member<'a> {
    account: UpstreamAccount,
    /// The share of the admission limits that its requests may hold; `None` for all of them.
    share: Option<&'a InFlightTracker>,
    up: bool,
    latency: Latency,
    entry: AvailabilityEntry,
}

/// A slot at an upstream, and the permit of the upstream's share.
#[derive(Debug)]
pub struct Reservation<'a> {
    pub upstream: usize,
    pub ticket: UpstreamTicket,
    pub share: HeldPermit<'a>,
}

/// The reason that a request got no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// Every upstream that could take it is at its limit or exceeds a threshold.
    Busy,
    /// An upstream has room, and its requests hold as much of the gateway as they may.
    Share,
    /// No upstream is left to try.
    NoUpstream,
}

/// The upstreams as the policy sees them for one request. Keeps the first invariant that a reservation broke.
struct View<'v, 'a> {
    upstreams: &'v mut Members<'a>,
    ask: &'v Ask,
    waiting: &'v Record,
    now: Duration,
    share_is_full: bool,
    broken: Option<Broken>,
}

// === impl Fleet ===

impl<'a> Fleet<'a> {
    pub fn new(settings: &Settings, trackers: &'a Trackers, plant: Option<Flaw>) -> Self {
        let thresholds = settings.thresholds;
        let member = |(index, share): (usize, &'a Option<InFlightTracker>)| Member {
            account: UpstreamAccount::new(OnSilence::Free, settings.limit),
            share: share.as_ref(),
            up: true,
            latency: Latency::default(),
            entry: AvailabilityEntry::new(index, thresholds),
        };
        let all: Vec<_> = trackers.upstreams.iter().enumerate().map(member).collect();
        let size = all.len();
        let mut upstreams = Members {
            all,
            thresholds,
            availability: Availability::new(size),
            demand: Demand::new(settings.retry),
            plant,
        };
        (0..size).for_each(|upstream| upstreams.publish(upstream));
        Self {
            policy: RoutingPolicy::new(settings.pick),
            upstreams,
            service: ServiceEstimator::default(),
            needs_reports: settings.upstreams.reports
                && (!thresholds.are_off()
                    || settings.pick == Pick::LeastLoaded
                    || matches!(settings.limit, UpstreamLimit::Auto(_))),
        }
    }

    /// Reserves a slot at an upstream that has room. Checks that no more urgent request waits for that slot.
    pub fn reserve(
        &mut self,
        ask: &Ask,
        waiting: &Record,
        draw: u64,
        now: Time,
    ) -> Result<Result<Reservation<'a>, NoRoom>, Broken> {
        // A request without a slot may wait: it counts as refused only when it may not.
        let now = Duration::from_nanos(now);
        let query = RouteQuery { dry_run: true, draw, now };
        let upstreams = &mut self.upstreams;
        let mut view = View { upstreams, ask, waiting, now, share_is_full: false, broken: None };
        let routed = self.policy.route(&mut view, &query);
        if let Some(broken) = view.broken {
            return Err(broken);
        }
        Ok(routed.map_err(|error| match error {
            RouteError::Overloaded(_) if view.share_is_full => NoRoom::Share,
            RouteError::Overloaded(_) => NoRoom::Busy,
            _ => NoRoom::NoUpstream,
        }))
    }

    /// Counts a refusal because all upstreams are busy, and returns the wait that its client is told.
    pub fn refuse(&mut self, ask: &Ask, now: Time) -> Duration {
        let (upstreams, waiting) = (&mut self.upstreams, &Record::default());
        let now = Duration::from_nanos(now);
        let view = View { upstreams, ask, waiting, now, share_is_full: false, broken: None };
        match self.policy.refuse(&view, false, now) {
            RouteError::Overloaded(overload) => told(overload.retry_after),
            _ => told(self.upstreams.demand.advice(now)),
        }
    }

    /// Records that the request was sent.
    pub fn sent(&mut self, upstream: usize, ticket: &mut UpstreamTicket, now: Time) {
        self.upstreams.all[upstream].account.sent(ticket, Duration::from_nanos(now));
    }

    /// Releases the slot of a request that ended so, and was at its upstream for this time if it was sent.
    /// `is_queued`: requests wait for the pool.
    pub fn release(
        &mut self,
        (upstream, ticket): (usize, UpstreamTicket),
        (outcome, served): (UpstreamOutcome, Option<Duration>),
        is_queued: bool,
        now: Time,
    ) {
        let now = Duration::from_nanos(now);
        self.upstreams.demand.end(now, served);
        let is_awaited = is_queued || self.upstreams.demand.is_awaited();
        self.upstreams.all[upstream].account.release(ticket, outcome, is_awaited, now);
        self.upstreams.publish(upstream);
    }

    /// Records an upstream's answer.
    pub fn answered(&mut self, upstream: usize, answer: Answer, now: Time) {
        let (member, now) = (&mut self.upstreams.all[upstream], Duration::from_nanos(now));
        member.latency.observe(answer, now);
        if matches!(answer, Answer::Began(_)) && member.account.recover(now) {
            self.upstreams.publish(upstream);
        }
    }

    /// Records whether an upstream can be reached. One that comes back is used at once.
    pub fn set_up(&mut self, upstream: usize, up: bool, now: Time) {
        let member = &mut self.upstreams.all[upstream];
        if std::mem::replace(&mut member.up, up) != up && up {
            member.account.recover(Duration::from_nanos(now));
            member.latency = Latency::default();
        }
        self.upstreams.publish(upstream);
    }

    /// Records a load report.
    pub fn record_report(&mut self, upstream: usize, report: LoadReport, now: Time) {
        let now = Duration::from_nanos(now);
        self.upstreams.all[upstream].account.record_report(0, report, now, now);
        self.upstreams.publish(upstream);
    }

    /// Lets old reports expire, ends the rounds of limits that are found, and updates the retry advice.
    pub fn tick(&mut self, is_queued: bool, now: Time) {
        let now = Duration::from_nanos(now);
        let is_awaited = is_queued || self.upstreams.demand.is_awaited();
        let before = now.saturating_sub(REPORT_TTL);
        for upstream in 0..self.upstreams.all.len() {
            self.upstreams.all[upstream].account.tick(now, before, is_awaited);
            self.upstreams.publish(upstream);
        }
        self.upstreams.demand.observe(&mut self.service, now);
    }

    /// Returns `true` if load reports influence any decision.
    pub fn needs_reports(&self) -> bool {
        self.needs_reports
    }

    /// Returns `true` if a waiting request may find a slot.
    pub fn has_room(&self) -> bool {
        RoutingPolicy::has_room(&self.upstreams.availability)
    }

    /// Returns `true` if an upstream that is up shows room.
    pub fn has_free(&self) -> bool {
        !self.upstreams.availability.free().is_empty()
    }

    /// Returns `true` if the request was tried at every upstream.
    pub fn is_exhausted(&self, ask: &Ask) -> bool {
        (0..self.upstreams.all.len()).all(|upstream| ask.has_tried(upstream))
    }

    /// Returns the first upstream that is up and would take the request.
    pub fn free_for(&self, ask: &Ask) -> Option<usize> {
        let mut free = self.upstreams.availability.free().iter();
        free.find(|upstream| self.upstreams.could_take(*upstream, ask))
    }

    /// Counts the requests that hold a slot.
    pub fn outstanding(&self) -> u64 {
        self.upstreams.all.iter().map(|member| member.account.load().outstanding()).sum()
    }

    /// Returns the first upstream that has no room.
    pub fn not_free(&self) -> Option<usize> {
        let free = self.upstreams.availability.free();
        (0..self.upstreams.all.len()).find(|upstream| !free.contains(*upstream))
    }
}

// === impl Members ===

impl Members<'_> {
    /// Returns `true` if the request could get a slot at this upstream.
    fn could_take(&self, upstream: usize, ask: &Ask) -> bool {
        let Member { account, share, .. } = &self.all[upstream];
        !ask.has_tried(upstream)
            && account.load().standing(account.load().estimate(ask.charge), &self.thresholds)
                == Standing::Free
            && share.is_none_or(|share| share.would_admit(ask.priority).is_ok())
    }

    fn publish(&mut self, upstream: usize) {
        let Member { account, up, entry, .. } = &mut self.all[upstream];
        let mut shown = entry.judge(account.load(), *up);
        if let (Some(Flaw::LatchedBusy), Some(before)) = (self.plant, entry.shown())
            && before.standing != Standing::Free
        {
            shown.standing = before.standing;
        }
        entry.publish(&self.availability, shown, account.load().requests());
    }
}

// === impl View ===

impl<'a> Pool for View<'_, 'a> {
    type Reservation = Reservation<'a>;

    fn availability(&self) -> &Availability {
        &self.upstreams.availability
    }

    fn demand(&self) -> &Demand {
        &self.upstreams.demand
    }

    fn is_excluded(&self, index: usize) -> bool {
        self.ask.has_tried(index)
    }

    fn expected_wait(&self, index: usize) -> ExpectedWait {
        let member = &self.upstreams.all[index];
        member.account.expected_wait(member.latency.known_at(self.now))
    }

    fn try_reserve(&mut self, index: usize) -> Option<Reservation<'a>> {
        let Ask { priority, charge, .. } = *self.ask;
        let mut higher = self.waiting.more_urgent(priority, self.now);
        let overtaken = higher.find(|waiter| self.upstreams.could_take(index, waiter));
        let thresholds = self.upstreams.thresholds;
        let member = &mut self.upstreams.all[index];
        let ticket = member.account.try_charge(charge, &thresholds, self.now).ok()?;
        let share = match member.share.map(|share| share.try_acquire(priority)) {
            Some(Err(_)) => {
                let ignored = UpstreamOutcome::Ignored;
                member.account.release(ticket, ignored, false, self.now);
                self.share_is_full = true;
                return None;
            }
            Some(Ok(permit)) => Some(permit),
            None => None,
        };
        if let Some(Ask { priority: higher, .. }) = overtaken {
            let text = format!("upstream {index} was sent {priority} while {higher} waits for it");
            self.broken = Some(Broken::new(Broken::OVERTAKEN, text));
        }
        self.upstreams.demand.begin(self.now);
        self.upstreams.publish(index);
        Some(Reservation { upstream: index, ticket, share })
    }
}
