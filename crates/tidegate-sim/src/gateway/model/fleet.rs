use super::advice::told;
use super::check::Broken;
use super::settings::Settings;
use crate::agenda::Time;
use crate::gateway::Flaw;
use std::time::Duration;
use tidegate_core::admission::MessagePriority;
use tidegate_core::routing::{
    Answer, Availability, AvailabilityEntry, BusyThresholds, Charge, ChargeTicket, Demand,
    DrainAdvisor, LaneThresholds, Latency, LoadAccount, LoadReport, OnSilence, Pick, Pool,
    RouteError, RouteQuery, RoutingPolicy, Shares, Standing, TriedUpstreams,
};

/// The age at which a load report expires.
const REPORT_TTL: Duration = Duration::from_secs(5);

/// The gateway's router: the policy that ships, over upstreams in the simulator's memory.
#[derive(Debug)]
pub struct Fleet {
    policy: RoutingPolicy,
    upstreams: Members,
    drain: DrainAdvisor,
    needs_reports: bool,
}

/// The upstreams as the gateway knows them.
#[derive(Debug)]
struct Members {
    all: Vec<Member>,
    thresholds: LaneThresholds,
    availability: Availability,
    demand: Demand,
    plant: Option<Flaw>,
}

#[derive(Debug)]
struct Member {
    account: LoadAccount,
    up: bool,
    latency: Latency,
    entry: AvailabilityEntry,
}

/// The requirements of one request on its upstream.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    pub priority: MessagePriority,
    pub charge: Charge,
    pub tried: TriedUpstreams<u16>,
}

/// The upstreams as the policy sees them for one request. Keeps the first invariant that a reservation broke.
struct View<'a> {
    upstreams: &'a mut Members,
    ask: &'a Ask,
    now: Duration,
    broken: Option<Broken>,
}

// === impl Fleet ===

impl Fleet {
    pub fn new(settings: &Settings, plant: Option<Flaw>) -> Self {
        let size = usize::from(settings.upstreams.count);
        let thresholds = LaneThresholds::new(settings.thresholds, Shares::default());
        let member = |index| Member {
            account: LoadAccount::new(OnSilence::Free),
            up: true,
            latency: Latency::default(),
            entry: AvailabilityEntry::new(index, thresholds),
        };
        let mut upstreams = Members {
            all: (0..size).map(member).collect(),
            thresholds,
            availability: Availability::new(size),
            demand: Demand::new(settings.retry.min),
            plant,
        };
        (0..size).for_each(|upstream| upstreams.publish(upstream));
        Self {
            policy: RoutingPolicy::new(settings.pick, settings.retry),
            upstreams,
            drain: DrainAdvisor::new(settings.retry),
            needs_reports: !settings.thresholds.are_off() || settings.pick == Pick::LeastLoaded,
        }
    }

    /// Reserves a slot at an upstream that has room.
    pub fn route(
        &mut self,
        ask: &Ask,
        draw: u64,
        now: Time,
    ) -> Result<Result<(usize, ChargeTicket), RouteError>, Broken> {
        let now = Duration::from_nanos(now);
        let query = RouteQuery { priority: ask.priority, dry_run: false, draw, now };
        let mut view = View { upstreams: &mut self.upstreams, ask, now, broken: None };
        let routed = self.policy.route(&mut view, &query);
        if let Some(broken) = view.broken {
            return Err(broken);
        }
        if matches!(routed, Err(RouteError::Overloaded(_))) {
            let judged = self.upstreams.demand.judge(ask.priority, now);
            self.upstreams.check_refused(judged, ask)?;
        }
        Ok(routed)
    }

    /// Records that the request was sent.
    pub fn sent(&mut self, upstream: usize, ticket: &mut ChargeTicket, now: Time) {
        self.upstreams.all[upstream].account.sent(ticket, Duration::from_nanos(now));
    }

    /// Releases the slot of a request that is over.
    pub fn release(&mut self, upstream: usize, ticket: ChargeTicket) {
        self.upstreams.all[upstream].account.release(ticket);
        self.upstreams.demand.end();
        self.upstreams.publish(upstream);
    }

    /// Records an upstream's answer.
    pub fn answered(&mut self, upstream: usize, answer: Answer, now: Time) {
        self.upstreams.all[upstream].latency.observe(answer, Duration::from_nanos(now));
    }

    /// Records whether an upstream can be reached.
    pub fn set_up(&mut self, upstream: usize, up: bool) {
        self.upstreams.all[upstream].up = up;
        self.upstreams.publish(upstream);
    }

    /// Records a load report.
    pub fn record_report(&mut self, upstream: usize, report: LoadReport, now: Time) {
        self.upstreams.all[upstream].account.record_report(0, report, Duration::from_nanos(now));
        self.upstreams.publish(upstream);
    }

    /// Lets old reports expire, and updates the retry advice.
    pub fn tick(&mut self, now: Time) {
        let now = Duration::from_nanos(now);
        let before = now.saturating_sub(REPORT_TTL);
        for upstream in 0..self.upstreams.all.len() {
            if self.upstreams.all[upstream].account.expire(before) {
                self.upstreams.publish(upstream);
            }
        }
        self.upstreams.demand.observe(&mut self.drain, now);
    }

    /// Returns the wait that a refused client is told.
    pub fn retry_after(&self) -> Duration {
        told(self.policy.retry_after(&self.upstreams.demand))
    }

    /// Returns `true` if load reports influence any decision.
    pub fn needs_reports(&self) -> bool {
        self.needs_reports
    }

    /// Counts the requests that hold a slot.
    pub fn outstanding(&self) -> u64 {
        self.upstreams.all.iter().map(|member| member.account.outstanding()).sum()
    }

    /// Returns the first upstream that has no room for some priority.
    pub fn not_free(&self) -> Option<(usize, MessagePriority)> {
        let all = (0..self.upstreams.all.len())
            .flat_map(|upstream| MessagePriority::ALL.map(|priority| (upstream, priority)));
        let free = |priority| self.upstreams.availability.free(priority);
        all.into_iter().find(|(upstream, priority)| !free(*priority).contains(*upstream))
    }
}

// === impl Members ===

impl Members {
    /// Checks that a refused request leaves no slot that a lower priority would get.
    fn check_refused(&self, judged: MessagePriority, ask: &Ask) -> Result<(), Broken> {
        for lower in MessagePriority::ALL.into_iter().filter(|lower| *lower > judged) {
            let free = self.availability.free(lower).iter();
            for upstream in free.filter(|upstream| !ask.has_tried(*upstream)) {
                if self.standing(upstream, ask.charge, lower) == Standing::Free {
                    let text = format!(
                        "{judged} was refused, all being busy, and upstream {upstream} would take {lower}"
                    );
                    return Err(Broken::new(Broken::PRIORITY, text));
                }
            }
        }
        Ok(())
    }

    /// Returns the priority above `judged`, if any, that this upstream would refuse.
    fn refuses_higher(
        &self,
        upstream: usize,
        charge: Charge,
        judged: MessagePriority,
    ) -> Option<MessagePriority> {
        let own = self.thresholds_of(judged);
        let mut higher = MessagePriority::ALL.into_iter().filter(|higher| *higher < judged);
        higher.find(|higher| {
            self.thresholds_of(*higher) != own
                && self.standing(upstream, charge, *higher) != Standing::Free
        })
    }

    fn standing(&self, upstream: usize, guess: Charge, priority: MessagePriority) -> Standing {
        let account = &self.all[upstream].account;
        account.standing(account.estimate(guess), self.thresholds_of(priority))
    }

    fn thresholds_of(&self, priority: MessagePriority) -> &BusyThresholds {
        self.thresholds.of(self.share_of(priority))
    }

    /// Returns the priority whose share of the thresholds applies: its own unless the flaw is planted.
    fn share_of(&self, priority: MessagePriority) -> MessagePriority {
        match (self.plant, priority) {
            (Some(Flaw::UpsideDown), MessagePriority::High) => MessagePriority::Low,
            (Some(Flaw::UpsideDown), MessagePriority::Low) => MessagePriority::High,
            _ => priority,
        }
    }

    fn publish(&mut self, upstream: usize) {
        let share_of = [MessagePriority::High, MessagePriority::Low]
            .map(|priority| (priority, self.share_of(priority)));
        let Member { account, up, entry, .. } = &mut self.all[upstream];
        let judged = entry.judge(account, *up);
        let mut shown = judged;
        for (priority, share_of) in share_of {
            shown.set_standing(priority, judged.standing(share_of));
        }
        if let (Some(Flaw::LatchedBusy), Some(before)) = (self.plant, entry.shown()) {
            for priority in MessagePriority::ALL {
                if before.standing(priority) != Standing::Free {
                    shown.set_standing(priority, before.standing(priority));
                }
            }
        }
        entry.publish(&self.availability, shown, account.requests());
    }
}

// === impl View ===

impl Pool for View<'_> {
    type Reservation = (usize, ChargeTicket);

    fn availability(&self) -> &Availability {
        &self.upstreams.availability
    }

    fn demand(&self) -> &Demand {
        &self.upstreams.demand
    }

    fn is_excluded(&self, index: usize) -> bool {
        self.ask.has_tried(index)
    }

    fn cost(&self, index: usize) -> u64 {
        let member = &self.upstreams.all[index];
        let in_flight = member.account.outstanding() + 1;
        in_flight.saturating_mul(member.latency.estimate_at(self.now))
    }

    fn try_reserve(
        &mut self,
        index: usize,
        judged: MessagePriority,
    ) -> Option<(usize, ChargeTicket)> {
        let charge = self.ask.charge;
        let refused = self.upstreams.refuses_higher(index, charge, judged);
        let thresholds = *self.upstreams.thresholds_of(judged);
        let ticket = self.upstreams.all[index].account.try_charge(charge, &thresholds).ok()?;
        if let Some(higher) = refused {
            let text = format!("upstream {index} took {judged}, and would refuse {higher}");
            self.broken = Some(Broken::new(Broken::PRIORITY, text));
        }
        self.upstreams.demand.begin();
        self.upstreams.publish(index);
        Some((index, ticket))
    }
}

// === impl Ask ===

impl Ask {
    fn has_tried(&self, upstream: usize) -> bool {
        self.tried.ids().iter().any(|tried| usize::from(*tried) == upstream)
    }
}
