use super::event::Event;
use super::places::Places;
use super::waits::Waits;
use super::{AdmissionScenario, PriorityReport, Report, ServiceTime};
use crate::agenda::{Agenda, Time};
use crate::random::SplitMix64;
use std::time::Duration;
use tidegate_core::admission::{InFlightTracker, MessagePriority, Reason, Refusal, RetryAdvisor};

/// How often the advisor looks: what the server does.
const OBSERVE_EVERY: Duration = Duration::from_millis(100);

/// Runs a scenario to its end, and on until everything that was admitted is done.
///
/// # Panics
///
/// When an invariant breaks: a limit is exceeded, Critical is refused, a permit does not end. That is a
/// defect of the decisions, and no report may hide it.
#[must_use]
pub fn run(scenario: &AdmissionScenario) -> Report {
    let tracker = InFlightTracker::new(scenario.limits, scenario.sharing);
    let mut simulation = Simulation::new(scenario, &tracker);
    while let Some((now, event)) = simulation.agenda.next() {
        simulation.happen(now, event);
    }
    simulation.places.check_all_ended();
    simulation.into_report()
}

struct Simulation<'a> {
    scenario: &'a AdmissionScenario,
    tracker: &'a InFlightTracker,
    advisor: RetryAdvisor,
    agenda: Agenda<Event>,
    places: Places<'a>,
    chance: [Chance; 4],
    tallies: [Tally; 4],
    phase: u32,
    end: Time,
}

/// A stream for each use, so that one more arrival of Low leaves High's times as they were.
struct Chance {
    arrivals: SplitMix64,
    service: SplitMix64,
    spread: SplitMix64,
}

struct Tally {
    offered: u64,
    admitted_at_once: u64,
    admitted_at_first_return: u64,
    admitted_later: u64,
    refused: [u64; 2],
    returned: u64,
    waiting_at_end: u64,
    done: u64,
    waits: Waits,
}

// === impl Simulation ===

impl<'a> Simulation<'a> {
    fn new(scenario: &'a AdmissionScenario, tracker: &'a InFlightTracker) -> Self {
        let mut seeds = SplitMix64::new(scenario.seed);
        let mut agenda = Agenda::default();
        let mut start = 0;
        for (index, phase) in (0..).zip(&scenario.phases) {
            agenda.plan(start, Event::Phase(index));
            start += nanos(phase.duration);
        }
        agenda.plan(0, Event::Observe);
        Self {
            scenario,
            tracker,
            advisor: RetryAdvisor::new(scenario.retry),
            agenda,
            places: Places::new(tracker, scenario.sharing),
            chance: std::array::from_fn(|_| Chance {
                arrivals: seeds.fork(),
                service: seeds.fork(),
                spread: seeds.fork(),
            }),
            tallies: std::array::from_fn(|_| Tally::new(scenario.retry.max)),
            phase: 0,
            end: start,
        }
    }

    fn happen(&mut self, now: Time, event: Event) {
        match event {
            Event::Phase(phase) => {
                self.phase = phase;
                // Poisson arrivals have no memory: starting all of them anew is what a change of rate is.
                MessagePriority::ALL
                    .into_iter()
                    .for_each(|priority| self.plan_arrival(now, priority));
            }
            Event::Arrival { priority, phase } if phase == self.phase => {
                self.tallies[priority.index()].offered += 1;
                self.plan_arrival(now, priority);
                self.ask(now, priority, 0);
            }
            Event::Arrival { .. } => {}
            Event::Return { priority, attempt } => self.ask(now, priority, attempt),
            Event::End { place } => {
                let priority = self.places.end(place);
                self.tallies[priority.index()].done += u64::from(now < self.end);
            }
            Event::Observe => self.observe(now),
        }
    }

    fn plan_arrival(&mut self, now: Time, priority: MessagePriority) {
        let phase = self.phase;
        let per_s = self.scenario.arrivals_per_s[priority.index()]
            * self.scenario.phases[phase as usize].load;
        if per_s <= 0.0 {
            return;
        }
        let gap_ns = self.chance[priority.index()].arrivals.exponential(1e9 / per_s);
        let at = now + gap_ns as Time;
        if at < self.end {
            self.agenda.plan(at, Event::Arrival { priority, phase });
        }
    }

    /// Attempt 0 is a new message, 1 the first time that it comes back.
    fn ask(&mut self, now: Time, priority: MessagePriority, attempt: u32) {
        let lane = priority.index();
        let tally = &mut self.tallies[lane];
        tally.returned += u64::from(attempt == 1);
        match self.places.take(priority) {
            Ok(place) => {
                match attempt {
                    0 => tally.admitted_at_once += 1,
                    1 => tally.admitted_at_first_return += 1,
                    _ => tally.admitted_later += 1,
                }
                let service_ns = self.service_ns(lane);
                self.agenda.plan(now + service_ns, Event::End { place });
            }
            Err(refusal) => self.turn_away(now, refusal, attempt),
        }
    }

    fn turn_away(&mut self, now: Time, refusal: Refusal, attempt: u32) {
        let lane = refusal.priority.index();
        let mut wait = self.advisor.advise(refusal);
        if self.scenario.spread {
            wait = self.scenario.retry.spread(wait, self.chance[lane].spread.uniform());
        }
        let tally = &mut self.tallies[lane];
        tally.refused[refusal.reason.index()] += 1;
        tally.waits.record(wait);
        if attempt == self.scenario.returns_max {
            return;
        }
        let at = now + nanos(wait);
        if at < self.end {
            let again = Event::Return { priority: refusal.priority, attempt: attempt + 1 };
            self.agenda.plan(at, again);
        } else {
            tally.waiting_at_end += 1;
        }
    }

    fn observe(&mut self, now: Time) {
        self.advisor.observe(Duration::from_nanos(now), &self.tracker.stats());
        let next = now + nanos(OBSERVE_EVERY);
        if next <= self.end {
            self.agenda.plan(next, Event::Observe);
        }
    }

    fn service_ns(&mut self, lane: usize) -> Time {
        match self.scenario.service {
            ServiceTime::Fixed(time) => nanos(time),
            ServiceTime::Exponential(mean) => {
                self.chance[lane].service.exponential(nanos(mean) as f64) as Time
            }
        }
    }

    fn into_report(self) -> Report {
        let duration_s = self.scenario.duration().as_secs_f64();
        let by_priority = MessagePriority::ALL.map(|priority| {
            let own_limit = Refusal { priority, reason: Reason::PriorityLimit };
            let report = PriorityReport {
                in_flight_max: self.places.in_flight_max(priority),
                advice_at_end_ms: self.advisor.advise(own_limit).as_millis() as u64,
                ..self.tallies[priority.index()].to_report(duration_s)
            };
            (priority, report)
        });
        Report {
            seed: self.scenario.seed,
            duration_s,
            decisions: self.tallies.iter().map(Tally::decisions).sum(),
            by_priority: by_priority.into(),
        }
    }
}

// === impl Tally ===

impl Tally {
    fn new(longest_wait: Duration) -> Self {
        Self {
            offered: 0,
            admitted_at_once: 0,
            admitted_at_first_return: 0,
            admitted_later: 0,
            refused: [0; 2],
            returned: 0,
            waiting_at_end: 0,
            done: 0,
            waits: Waits::up_to(longest_wait),
        }
    }

    fn admitted(&self) -> u64 {
        self.admitted_at_once + self.admitted_at_first_return + self.admitted_later
    }

    fn decisions(&self) -> u64 {
        self.admitted() + self.refused.iter().sum::<u64>()
    }

    fn to_report(&self, duration_s: f64) -> PriorityReport {
        PriorityReport {
            offered: self.offered,
            admitted: self.admitted(),
            admitted_at_once: self.admitted_at_once,
            refused: Reason::ALL.map(|reason| (reason.name(), self.refused[reason.index()])).into(),
            goodput_per_s: self.done as f64 / duration_s,
            advised_wait: self.waits.quantiles(),
            returned: self.returned,
            admitted_at_first_return: self.admitted_at_first_return,
            waiting_at_end: self.waiting_at_end,
            ..PriorityReport::default()
        }
    }
}

fn nanos(duration: Duration) -> Time {
    u64::try_from(duration.as_nanos()).expect("less than five hundred years")
}
