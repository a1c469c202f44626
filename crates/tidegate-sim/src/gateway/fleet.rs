use super::Flaw;
use super::advice::told;
use super::check::Broken;
use super::request::Tried;
use super::settings::Settings;
use crate::agenda::Time;
use std::time::Duration;
use tidegate_core::admission::{MessagePriority, RetryBounds, Spread};
use tidegate_core::routing::{
    Answer, BusyThresholds, Candidates, Charge, DrainAdvisor, FreeSet, HighAsked, Latency,
    LoadReport, Loads, OnSilence, Pick, Standing, Ticket, WorkerLedger,
};

/// How long a worker's word about its load is believed.
const REPORT_TTL: Duration = Duration::from_secs(5);

/// What the gateway knows of the workers, and its choice among them.
#[derive(Debug)]
pub(super) struct Fleet {
    members: Vec<Member>,
    /// By priority.
    thresholds: [BusyThresholds; 4],
    /// Whether nothing is checked at all: then all priorities see the same.
    are_off: bool,
    free: [FreeSet; 4],
    loads: [Loads; 4],
    up: FreeSet,
    high_asked: HighAsked,
    pick: Pick,
    turn: u64,
    latched: bool,
    bounds: RetryBounds,
    drain: DrainAdvisor,
    advice: Duration,
    spread: Spread,
    ended: u64,
    refused: u64,
    held: u64,
}

#[derive(Debug)]
struct Member {
    ledger: WorkerLedger,
    up: bool,
    latency: Latency,
    shown: Option<(bool, [bool; 4])>,
}

/// What a request needs of a worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub(super) priority: MessagePriority,
    pub(super) charge: Charge,
    pub(super) tried: Tried,
}

/// Why a request got no worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoRoute {
    /// All are busy; come back after this time.
    Busy(Duration),
    /// All that are there were tried.
    Exhausted,
}

/// The workers at one moment, for a pick.
struct Now<'a> {
    fleet: &'a Fleet,
    now: Duration,
    lane: usize,
}

// === impl Fleet ===

impl Fleet {
    pub(super) fn new(settings: &Settings, plant: Option<Flaw>) -> Self {
        let size = usize::from(settings.workers.count);
        let member = |_| Member {
            ledger: WorkerLedger::new(OnSilence::Free),
            up: true,
            latency: Latency::default(),
            shown: None,
        };
        let thresholds = settings.thresholds_of(plant);
        let drain = DrainAdvisor::new(settings.retry);
        let mut fleet = Self {
            members: (0..size).map(member).collect(),
            thresholds,
            are_off: settings.thresholds.are_off(),
            free: std::array::from_fn(|_| FreeSet::new(size)),
            loads: std::array::from_fn(|_| Loads::new(size)),
            up: FreeSet::new(size),
            high_asked: HighAsked::default(),
            pick: settings.pick,
            turn: 0,
            latched: plant == Some(Flaw::LatchedBusy),
            bounds: settings.retry,
            advice: settings.retry.min,
            drain,
            spread: Spread::default(),
            ended: 0,
            refused: 0,
            held: 0,
        };
        (0..size).for_each(|worker| fleet.show(worker));
        fleet
    }

    /// A place at a worker that has room, with one random number.
    pub(super) fn route(
        &mut self,
        ask: &Ask,
        chance: u64,
        now: Time,
    ) -> Result<Result<(usize, Ticket), NoRoute>, Broken> {
        // Normal is judged as High while nobody above it asks.
        let judged = self.high_asked.judge(ask.priority, Duration::from_nanos(now));
        let ask = &Ask { priority: judged, ..*ask };
        let lane = ask.priority.index();
        let chosen = self.choose(lane, chance, now);
        if let Some(worker) = chosen.filter(|worker| !ask.tried.has(*worker))
            && let Some(ticket) = self.take(worker, ask)?
        {
            return Ok(Ok((worker, ticket)));
        }
        // The chosen one was tried, or is too small for this one. Look at all that are left.
        let size = self.members.len();
        let start = chance as usize % size;
        for worker in (start..size).chain(0..start) {
            if self.free[lane].contains(worker)
                && !ask.tried.has(worker)
                && let Some(ticket) = self.take(worker, ask)?
            {
                return Ok(Ok((worker, ticket)));
            }
        }
        self.last_resort(ask, chance)
    }

    fn choose(&mut self, lane: usize, chance: u64, now: Time) -> Option<usize> {
        let turn = self.turn;
        if self.pick == Pick::RoundRobin {
            self.turn += 1;
        }
        let candidates = Now { fleet: self, now: Duration::from_nanos(now), lane };
        self.pick.choose(&self.free[lane], &candidates, chance, turn)
    }

    /// Nobody has room: someone who is down, when nobody is up; otherwise a refusal.
    fn last_resort(
        &mut self,
        ask: &Ask,
        chance: u64,
    ) -> Result<Result<(usize, Ticket), NoRoute>, Broken> {
        let size = self.members.len();
        let left = |worker: &usize| !ask.tried.has(*worker);
        if self.up.iter().any(|worker| left(&worker)) {
            return self.refuse(ask).map(Err);
        }
        let start = chance as usize % size;
        let mut any = false;
        for worker in (start..size).chain(0..start).filter(left) {
            any = true;
            if let Some(ticket) = self.take(worker, ask)? {
                return Ok(Ok((worker, ticket)));
            }
        }
        if any { self.refuse(ask).map(Err) } else { Ok(Err(NoRoute::Exhausted)) }
    }

    fn refuse(&mut self, ask: &Ask) -> Result<NoRoute, Broken> {
        self.refused += 1;
        self.check_refused(ask)?;
        Ok(NoRoute::Busy(self.retry_after()))
    }

    /// Whoever is refused because all are busy, nobody of a lower priority would have got the same place.
    fn check_refused(&self, ask: &Ask) -> Result<(), Broken> {
        for lower in MessagePriority::ALL.into_iter().filter(|lower| *lower > ask.priority) {
            let free = self.free[lower.index()].iter().filter(|worker| !ask.tried.has(*worker));
            for worker in free {
                if self.stands(worker, ask.charge, lower) == Standing::Free {
                    let text = format!(
                        "{} was refused, all being busy, and worker {worker} would take {lower}",
                        ask.priority
                    );
                    return Err(Broken::new(Broken::PRIORITY, text));
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, worker: usize, ask: &Ask) -> Result<Option<Ticket>, Broken> {
        let lane = ask.priority.index();
        let higher = MessagePriority::ALL.into_iter().filter(|higher| *higher < ask.priority);
        let mut refused =
            higher.filter(|higher| self.thresholds[higher.index()] != self.thresholds[lane]);
        let refused =
            refused.find(|higher| self.stands(worker, ask.charge, *higher) != Standing::Free);
        let member = &mut self.members[worker];
        let Ok(ticket) = member.ledger.try_charge(ask.charge, &self.thresholds[lane]) else {
            return Ok(None);
        };
        if let Some(higher) = refused {
            let text = format!("worker {worker} took {}, and would refuse {higher}", ask.priority);
            return Err(Broken::new(Broken::PRIORITY, text));
        }
        self.held += 1;
        self.show(worker);
        Ok(Some(ticket))
    }

    fn stands(&self, worker: usize, guess: Charge, priority: MessagePriority) -> Standing {
        let ledger = &self.members[worker].ledger;
        ledger.standing(ledger.estimate(guess), &self.thresholds[priority.index()])
    }

    /// The request went out.
    pub(super) fn sent(&mut self, worker: usize, ticket: &mut Ticket, now: Time) {
        self.members[worker].ledger.sent(ticket, Duration::from_nanos(now));
    }

    /// The request is over.
    pub(super) fn release(&mut self, worker: usize, ticket: Ticket) {
        self.members[worker].ledger.release(ticket);
        self.held -= 1;
        self.ended += 1;
        self.show(worker);
    }

    /// What one answer says of a worker.
    pub(super) fn answered(&mut self, worker: usize, answer: Answer, now: Time) {
        self.members[worker].latency.observe(answer, Duration::from_nanos(now));
    }

    /// A worker could be reached, or not.
    pub(super) fn set_up(&mut self, worker: usize, up: bool) {
        self.members[worker].up = up;
        self.show(worker);
    }

    pub(super) fn hear(&mut self, worker: usize, report: LoadReport, now: Time) {
        self.members[worker].ledger.hear(0, report, Duration::from_nanos(now));
        self.show(worker);
    }

    /// Lets old reports expire, and computes advice.
    pub(super) fn tick(&mut self, now: Time) {
        let now = Duration::from_nanos(now);
        let before = now.saturating_sub(REPORT_TTL);
        for worker in 0..self.members.len() {
            if self.members[worker].ledger.expire(before) {
                self.show(worker);
            }
        }
        self.drain.observe(now, self.ended, self.refused, self.held);
        self.advice = self.drain.advise();
    }

    /// When one that got no worker should come back.
    pub(super) fn retry_after(&self) -> Duration {
        told(self.bounds.spread(self.advice, self.spread.next()))
    }

    /// Whether anybody decides by what workers report.
    pub(super) fn needs_reports(&self) -> bool {
        !self.are_off || self.pick == Pick::LeastLoaded
    }

    pub(super) fn outstanding(&self) -> u64 {
        self.members.iter().map(|member| member.ledger.outstanding()).sum()
    }

    /// The first worker that is not free for everyone.
    pub(super) fn not_free(&self) -> Option<(usize, MessagePriority)> {
        let all = (0..self.members.len())
            .flat_map(|worker| MessagePriority::ALL.map(|priority| (worker, priority)));
        let mut all = all.into_iter();
        all.find(|(worker, priority)| !self.free[priority.index()].contains(*worker))
    }

    fn show(&mut self, worker: usize) {
        let member = &mut self.members[worker];
        let up = member.up;
        let stands = |thresholds| member.ledger.standing(Charge::LEAST, thresholds);
        let mut free = [false; 4];
        if up {
            let mut known: Option<(&BusyThresholds, bool)> = None;
            for (lane, thresholds) in self.thresholds.iter().enumerate() {
                free[lane] = match known {
                    Some((same, is_free)) if self.are_off || same == thresholds => is_free,
                    _ => stands(thresholds) == Standing::Free,
                };
                known = Some((thresholds, free[lane]));
            }
        }
        if let (true, Some((_, before))) = (self.latched, member.shown) {
            free.iter_mut().zip(before).for_each(|(free, before)| *free &= before);
        }
        let requests = member.ledger.requests();
        if member.shown != Some((up, free)) {
            member.shown = Some((up, free));
            self.up.set(worker, up);
            self.free.iter().zip(free).for_each(|(set, free)| set.set(worker, free));
        }
        for (loads, free) in self.loads.iter().zip(free) {
            loads.set(worker, free.then_some(requests));
        }
    }
}

// === impl Now ===

impl Candidates for Now<'_> {
    fn cost(&self, number: usize) -> u64 {
        self.fleet.members.get(number).map_or(u64::MAX, |member| {
            let in_flight = member.ledger.outstanding() + 1;
            in_flight.saturating_mul(member.latency.estimate_at(self.now))
        })
    }

    fn loads(&self) -> &Loads {
        &self.fleet.loads[self.lane]
    }
}
