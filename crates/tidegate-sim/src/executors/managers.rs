use super::crew::Crew;
use super::ledger::SimLedger;
use super::load::TaskLoad;
use super::manager::Manager;
use super::measure::Measure;
use super::message::{Ask, Caller, Key, Question, Told};
use super::rules::Rules;
use super::setup::{Setup, nanos};
use super::wire::{POLL_MAX, Wire};
use super::{ExecutorFlaw, ExecutorsReport, ExecutorsScenario};
use crate::agenda::{Agenda, Time};
use crate::random::SplitMix64;
use crate::scenario::Fault;
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate_core::capacity::{ExecutorId, Order, Placement, SlotLease, Ticket};
use tidegate_core::task::ExecutionKey;

/// A burst from which nobody recovers within so many times the theory is one from which nobody does.
const PATIENCE: u32 = 10;

/// Managers, each with the dispatcher that ships, the executors and a ledger, with messages that take time between
/// them, and what goes wrong with all of these.
///
/// `manager.rs` has what a manager knows, `driver.rs` how it brings an attempt to its end, `lives.rs` what is
/// killed and comes back.
pub(super) struct Managers {
    pub(super) placement: Placement,
    pub(super) now: Time,
    pub(super) agenda: Agenda<Event>,
    pub(super) managers: Vec<Manager>,
    pub(super) crew: Crew,
    pub(super) wire: Wire,
    pub(super) ledger: SimLedger,
    /// Questions that executors hold back until what they are about has ended.
    polls: BTreeMap<(ExecutorId, Key), Question>,
    pub(super) faults: Vec<Fault>,
    pub(super) lease: Duration,
    pub(super) flaw: Option<ExecutorFlaw>,
    load: TaskLoad,
    pub(super) arriving: bool,
    pub(super) chance: SplitMix64,
    pub(super) measure: Measure,
    pub(super) rules: Rules,
    burst: Option<(Time, u64)>,
    /// Between the burst and the moment in which nobody waits any more.
    recovering: bool,
    pub(super) horizon: Option<Time>,
    pub(super) sample_every: Time,
}

pub(super) enum Event {
    Arrives,
    Burst,
    Sample,
    /// A question has come to the executor.
    Heard(Question),
    /// What came of it has come to who asked.
    Told(Question, Told),
    LedgerHeard(Caller, LedgerAsk),
    LedgerTold(Caller, Option<SlotLease>),
    /// A slot that should have been held is held again.
    Regained(Caller, SlotLease),
    LedgerChanged {
        manager: usize,
    },
    Ended {
        at: ExecutorId,
        life: u32,
        key: Key,
    },
    /// The time is over for which a question is held back.
    PollOver {
        at: ExecutorId,
        key: Key,
    },
    Expires {
        at: ExecutorId,
    },
    Wake {
        manager: usize,
    },
    /// Who found nobody asks again.
    AskAgain(Caller),
    /// A task has waited as long as it must after it was lost.
    Later(Caller),
    Probe {
        manager: usize,
        life: u32,
    },
    Renew {
        manager: usize,
        life: u32,
    },
    Fault {
        index: usize,
        begins: bool,
    },
}

pub(super) enum LedgerAsk {
    Lease { holder: ExecutionKey, executors: Vec<ExecutorId> },
    Release(SlotLease),
    Withdraw(ExecutionKey),
    Regain { holder: ExecutionKey, at: ExecutorId },
    Renew { lease: SlotLease, at: ExecutorId },
}

// === impl Managers ===

impl Managers {
    pub(super) fn new(setup: Setup, placement: Placement) -> Self {
        let Setup { executors, managers, hop, lease, past_max, faults, flaw, .. } = setup;
        let mut rules = Rules::new(executors, &faults);
        if placement == Placement::Pull && managers == 1 {
            // The end is told one hop after it, if the question for it is there; and that is there two hops after
            // the start.
            rules.idle_bound = Some(3 * hop);
            rules.in_order = faults.is_empty();
        }
        let manager = |_| {
            let mut manager = Manager::new(placement);
            manager.meets_all(executors);
            manager
        };
        Self {
            placement,
            now: 0,
            agenda: Agenda::default(),
            managers: (0..managers).map(manager).collect(),
            crew: Crew::new(executors, past_max, lease, flaw),
            wire: Wire::new(hop, &faults, setup.wire_chance),
            ledger: SimLedger::new(executors, lease),
            polls: BTreeMap::new(),
            faults,
            lease,
            flaw,
            load: setup.load,
            arriving: true,
            chance: setup.chance,
            measure: setup.measure,
            rules,
            burst: None,
            recovering: false,
            horizon: setup.horizon,
            sample_every: setup.sample_every,
        }
    }

    /// Until the last task has arrived, or with a burst until nobody waits any more.
    pub(super) fn run(mut self, scenario: &ExecutorsScenario) -> ExecutorsReport {
        self.plan_arrival();
        let mut until = Time::MAX;
        if let Some(burst) = scenario.burst {
            let theory = scenario.recovery_in_theory().unwrap_or_default();
            until = nanos(burst.at + theory * PATIENCE);
            self.burst = Some((nanos(burst.at), scenario.burst_tasks()));
            self.agenda.plan(nanos(burst.at), Event::Burst);
        }
        while let Some((now, event)) = self.agenda.next() {
            // What happens after the last arrival is not measured.
            let all_are_here = self.measure.tasks.len() as u64 >= scenario.tasks;
            let is_over = scenario.burst.is_none() && all_are_here;
            if now > until || self.measure.recovered.is_some() || is_over {
                break;
            }
            self.happens(now, event);
        }
        debug_assert_eq!(self.rules.verdict(), Ok(()));
        self.measure.report(scenario)
    }

    pub(super) fn plan_arrival(&mut self) {
        match self.load.next_arrival() {
            Some(at) => self.agenda.plan(at, Event::Arrives),
            None => self.arriving = false,
        }
    }

    /// Tasks are dealt out in turn.
    pub(super) fn manager_of(&self, ticket: Ticket) -> usize {
        usize::try_from(ticket.0).unwrap_or_default() % self.managers.len()
    }

    pub(super) fn happens(&mut self, now: Time, event: Event) {
        self.now = now;
        self.rules.now = now;
        self.rules.events += 1;
        match event {
            Event::Arrives => {
                self.arrives();
                self.plan_arrival();
            }
            Event::Burst => {
                for _ in 0..self.burst.map_or(0, |(_, tasks)| tasks) {
                    self.arrives();
                }
                self.recovering = true;
            }
            Event::Sample => self.sample(),
            Event::Heard(question) => self.heard(question),
            Event::Told(question, told) => self.told(question, told),
            Event::LedgerHeard(from, ask) => self.ledger_heard(from, ask),
            Event::LedgerTold(from, lease) => self.leased(from, lease),
            Event::Regained(from, lease) => self.regained(from, lease),
            Event::LedgerChanged { manager } => {
                self.ask_ledger_again(manager);
                self.go_on(manager, None);
            }
            Event::Ended { at, life, key } => {
                if self.crew.is_up(at) && self.crew.life(at) == life {
                    self.stop(at, key, false);
                }
            }
            Event::PollOver { at, key } => self.answer_poll(at, key),
            Event::Expires { at } => self.expire(at),
            Event::Wake { manager } => {
                self.managers[manager].wake = None;
                self.go_on(manager, None);
            }
            Event::AskAgain(from) => self.ask_again(from),
            Event::Later(from) => self.later(from),
            Event::Probe { manager, life } => self.probe(manager, life),
            Event::Renew { manager, life } => self.renew(manager, life),
            Event::Fault { index, begins } => self.fault(index, begins),
        }
    }

    fn arrives(&mut self) {
        let takes = self.load.task_time();
        let ticket = Ticket(self.measure.arrives(self.now, takes));
        self.rules.arrives();
        let index = self.manager_of(ticket);
        if self.managers[index].down > 0 {
            // Whoever hands it in tries again until it is taken.
            return self.managers[index].outside.push_back(ticket);
        }
        self.submitted(index, ticket);
        self.go_on(index, None);
    }

    pub(super) fn submitted(&mut self, index: usize, ticket: Ticket) {
        let now = Duration::from_nanos(self.now);
        let told = self.managers[index].submit(ticket, now);
        if let Some(task) = self.measure.task(ticket.0) {
            task.told = told.map(nanos);
        }
    }

    /// What is to be done after something has happened to a manager.
    pub(super) fn go_on(&mut self, manager: usize, first: Option<Order>) {
        let now = Duration::from_nanos(self.now);
        let it = &mut self.managers[manager];
        if it.down > 0 {
            return;
        }
        self.rules.line(it.dispatcher.waiting());
        let mut orders: Vec<_> = first.into_iter().collect();
        let chance = &mut self.chance;
        orders.extend(it.dispatcher.orders(now, &mut || chance.next()));
        self.measure.decisions += 1 + orders.len() as u64;
        let wake = it.dispatcher.next_wake(now).map(nanos);
        let waiting = it.dispatcher.waiting();
        if let Some(at) = wake
            && it.wake.is_none_or(|planned| at < planned)
        {
            it.wake = Some(at);
            self.agenda.plan(at, Event::Wake { manager });
        }
        for order in orders {
            self.obey(manager, order);
        }
        self.rules.line(waiting);
        if self.recovering && self.managers.iter().all(|it| it.dispatcher.waiting() == 0) {
            self.recovering = false;
            let at = self.burst.map_or(0, |(at, _)| at);
            self.measure.recovered = Some(self.now - at);
        }
    }

    /// A message to or from the ledger. None of those is lost.
    pub(super) fn send(&mut self, event: Event) {
        self.measure.message(self.now);
        self.agenda.plan(self.now + self.wire.hop, event);
    }

    /// Asks an executor. Whatever happens to the question and its answer, something comes of it.
    pub(super) fn ask(&mut self, from: Caller, to: ExecutorId, ask: Ask) {
        let deadline = Wire::deadline(self.now, ask);
        let question = Question { from, to, ask, deadline: Some(deadline) };
        let is_counted = !matches!(ask, Ask::Capacity { .. });
        if is_counted {
            self.measure.message(self.now);
        }
        match self.wire.pass(self.now, to) {
            Some(at) if at <= deadline => self.agenda.plan(at, Event::Heard(question)),
            arrives => {
                self.agenda.plan(deadline, Event::Told(question, Told::Silence));
                if let Some(at) = arrives {
                    let late = Question { deadline: None, ..question };
                    self.agenda.plan(at, Event::Heard(late));
                }
            }
        }
    }

    /// Answers a question, if somebody still waits for it.
    pub(super) fn reply(&mut self, question: Question, told: Told) {
        let Some(deadline) = question.deadline else { return };
        if !matches!(question.ask, Ask::Capacity { .. }) {
            self.measure.message(self.now);
        }
        match self.wire.pass(self.now, question.to) {
            Some(at) if at <= deadline => self.agenda.plan(at, Event::Told(question, told)),
            _ => self.agenda.plan(deadline.max(self.now), Event::Told(question, Told::Silence)),
        }
    }

    /// What an executor does with a question.
    fn heard(&mut self, question: Question) {
        let Question { from: Caller { key, .. }, to, ask, .. } = question;
        if !self.crew.is_up(to) {
            return self.reply(question, Told::Refused);
        }
        self.measure.decisions += 1;
        let told = match ask {
            Ask::Execute => self.execute(to, key),
            Ask::Reserve => {
                let told = self.crew.reserve(
                    to,
                    key,
                    super::manager::RESERVED_FOR.min(self.lease),
                    self.now,
                );
                self.plan_expiry(to);
                told
            }
            Ask::Follow => match self.crew.follow(to, key, self.now) {
                None => Told::Nothing,
                Some(execution) => match execution.over {
                    Some(stopped) => Told::Over { fence: execution.fence, stopped },
                    None => {
                        self.polls.insert((to, key), question);
                        let held_until = self.now + nanos(POLL_MAX);
                        if execution.ends > held_until {
                            self.agenda.plan(held_until, Event::PollOver { at: to, key });
                        }
                        return;
                    }
                },
            },
            Ask::Delete => {
                self.crew.delete(to, key, self.now);
                self.rules.gives_up(to, self.crew.life(to), key);
                Told::Deleted
            }
            Ask::Capacity { .. } => {
                let occupancy = self.crew.occupancy(to, self.now);
                let taken = occupancy.map_or(0, |all| all.running + all.reserved);
                Told::Capacity { taken }
            }
        };
        if told == Told::Full {
            self.measure.waste(self.now);
        }
        self.reply(question, told);
    }

    fn execute(&mut self, at: ExecutorId, key: Key) -> Told {
        let Some(takes) = self.measure.task(key.ticket.0).map(|task| task.takes) else {
            return Told::Gone;
        };
        let begun = self.crew.execute(at, key, takes, self.now);
        if let (true, Told::Taken { fence }) = (begun.first, begun.told) {
            self.rules.starts(at, key, fence, &self.crew);
            self.measure.starts(key.ticket.0, self.now);
            let life = self.crew.life(at);
            self.agenda.plan(self.now + takes, Event::Ended { at, life, key });
            self.plan_expiry(at);
        }
        begun.told
    }

    fn plan_expiry(&mut self, at: ExecutorId) {
        if let Some(expires) = self.crew.plan_expiry(at) {
            self.agenda.plan(expires, Event::Expires { at });
        }
    }

    fn expire(&mut self, at: ExecutorId) {
        if !self.crew.is_up(at) {
            return;
        }
        for key in self.crew.expire(at, self.now) {
            self.stop(at, key, true);
        }
        self.plan_expiry(at);
    }

    /// An execution is over.
    fn stop(&mut self, at: ExecutorId, key: Key, stopped: bool) {
        let Some(execution) = self.crew.finish(at, key, stopped, self.now) else { return };
        self.measure.stops(execution.began, self.now);
        if let Some(question) = self.polls.remove(&(at, key)) {
            self.reply(question, Told::Over { fence: execution.fence, stopped });
        }
    }

    /// A question that was held back is answered: it runs on.
    fn answer_poll(&mut self, at: ExecutorId, key: Key) {
        let Some(question) = self.polls.remove(&(at, key)) else { return };
        let told = match self.crew.follow(at, key, self.now) {
            Some(execution) => Told::Runs { fence: execution.fence },
            None => Told::Nothing,
        };
        self.reply(question, told);
    }

    /// What hangs at an executor that is killed hears that nobody is there any more.
    pub(super) fn cut_polls(&mut self, at: ExecutorId) {
        let last = Key { ticket: Ticket(u64::MAX), attempt: u32::MAX };
        let first = Key { ticket: Ticket(0), attempt: 0 };
        let cut: Vec<_> = self.polls.range((at, first)..=(at, last)).map(|(key, _)| *key).collect();
        for key in cut {
            if let Some(question) = self.polls.remove(&key) {
                self.reply(question, Told::Silence);
            }
        }
    }
}
