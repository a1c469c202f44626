use super::ledger::SimLedger;
use super::load::TaskLoad;
use super::measure::Measure;
use super::slots::SlotTable;
use super::{ExecutorsReport, ExecutorsScenario};
use crate::agenda::{Agenda, Time};
use crate::random::SplitMix64;
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate_core::admission::MessagePriority::Normal;
use tidegate_core::capacity::{
    Answer, Dispatcher, ExecuteRefused, ExecutorId, LeaseAnswer, Order, Placement, RuntimeId,
    Serves, Ticket, WaitEstimate,
};

const RUNTIME: RuntimeId = RuntimeId(0);
/// What a full executor says.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// A burst from which nobody recovers within so many times the theory is one from which nobody does.
const PATIENCE: u32 = 10;

/// Managers, each with the dispatcher that ships, the executors and a ledger, with messages that take time between
/// them.
pub(super) struct Managers<'a> {
    scenario: &'a ExecutorsScenario,
    placement: Placement,
    hop: Time,
    now: Time,
    agenda: Agenda<Event>,
    managers: Vec<Manager>,
    slots: SlotTable,
    ledger: SimLedger,
    runs: BTreeMap<Ticket, Run>,
    load: TaskLoad,
    chance: SplitMix64,
    measure: Measure,
    /// Between the burst and the moment in which nobody waits any more.
    recovering: bool,
}

struct Manager {
    dispatcher: Dispatcher,
    estimate: WaitEstimate,
    wake: Option<Time>,
}

/// An attempt from the order to send it until its manager knows that it is over.
#[derive(Clone, Copy)]
struct Run {
    at: ExecutorId,
    ordered: Time,
    fence: u64,
    polled: bool,
    ended: bool,
}

enum Event {
    Arrives,
    Burst,
    /// An order has come to the executor or the ledger.
    Heard(Order),
    Answered {
        ticket: Ticket,
        answer: Answer,
    },
    Reserved {
        ticket: Ticket,
        answer: Answer,
    },
    Leased {
        ticket: Ticket,
        answer: LeaseAnswer,
    },
    LedgerChanged {
        manager: usize,
    },
    /// The executor is asked to tell when it is over.
    Polled(Ticket),
    Ended(Ticket),
    /// The manager learns that it is.
    Over(Ticket),
    Wake {
        manager: usize,
    },
}

// === impl Managers ===

impl<'a> Managers<'a> {
    pub(super) fn new(scenario: &'a ExecutorsScenario, placement: Placement) -> Self {
        let mut chance = SplitMix64::new(scenario.seed);
        let load = TaskLoad::new(scenario, &mut chance);
        let manager = |_| {
            let mut dispatcher = Dispatcher::new(placement);
            for id in 0..scenario.executors {
                dispatcher.executor_up(ExecutorId(id), 1, Serves::All);
            }
            Manager { dispatcher, estimate: WaitEstimate::default(), wake: None }
        };
        Self {
            scenario,
            placement,
            hop: nanos(scenario.hop),
            now: 0,
            agenda: Agenda::default(),
            managers: (0..scenario.managers.max(1)).map(manager).collect(),
            slots: SlotTable::new(scenario.executors),
            ledger: SimLedger::new(scenario.executors),
            runs: BTreeMap::new(),
            load,
            chance,
            measure: Measure::default(),
            recovering: false,
        }
    }

    pub(super) fn run(mut self) -> ExecutorsReport {
        self.plan_arrival();
        let mut until = Time::MAX;
        if let Some(burst) = self.scenario.burst {
            let theory = self.scenario.recovery_in_theory().unwrap_or_default();
            until = nanos(burst.at + theory * PATIENCE);
            self.agenda.plan(nanos(burst.at), Event::Burst);
        }
        while let Some((now, event)) = self.agenda.next() {
            if now > until || self.measure.recovered.is_some() {
                break;
            }
            // What happens after the last arrival is not measured.
            if self.scenario.burst.is_none() && self.is_over() {
                break;
            }
            self.now = now;
            self.happens(event);
        }
        self.measure.report(self.scenario)
    }

    fn is_over(&self) -> bool {
        self.measure.tasks.len() as u64 >= self.scenario.tasks
    }

    fn plan_arrival(&mut self) {
        if let Some(at) = self.load.next_arrival() {
            self.agenda.plan(at, Event::Arrives);
        }
    }

    fn manager_of(&self, ticket: Ticket) -> usize {
        // Tasks are dealt out in turn.
        usize::try_from(ticket.0).unwrap_or_default() % self.managers.len()
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.now)
    }

    fn happens(&mut self, event: Event) {
        let now = self.now();
        match event {
            Event::Arrives => {
                self.arrives();
                self.plan_arrival();
            }
            Event::Burst => {
                for _ in 0..self.scenario.burst_tasks() {
                    self.arrives();
                }
                self.recovering = true;
            }
            Event::Heard(order) => self.heard(&order),
            Event::Answered { ticket, answer } => {
                let manager = self.manager_of(ticket);
                let undo = self.managers[manager].dispatcher.answered(ticket, answer, now);
                if answer == Answer::Accepted {
                    self.send(Event::Polled(ticket));
                }
                self.go_on(manager, undo);
            }
            Event::Reserved { ticket, answer } => {
                let manager = self.manager_of(ticket);
                let next = self.managers[manager].dispatcher.reserved(ticket, answer, now);
                self.go_on(manager, next);
            }
            Event::Leased { ticket, answer } => {
                let manager = self.manager_of(ticket);
                let next = self.managers[manager].dispatcher.leased(ticket, answer, now);
                self.go_on(manager, next);
            }
            Event::LedgerChanged { manager } => {
                self.ask_ledger_again(manager);
                self.go_on(manager, None);
            }
            Event::Polled(ticket) => {
                let Some(run) = self.runs.get_mut(&ticket) else { return };
                run.polled = true;
                if run.ended {
                    self.send(Event::Over(ticket));
                }
            }
            Event::Ended(ticket) => self.ended(ticket),
            Event::Over(ticket) => self.over(ticket),
            Event::Wake { manager } => {
                self.managers[manager].wake = None;
                self.go_on(manager, None);
            }
        }
    }

    fn arrives(&mut self) {
        let takes = self.load.task_time();
        let ticket = Ticket(self.measure.arrives(self.now, takes));
        let index = self.manager_of(ticket);
        let now = self.now();
        let manager = &mut self.managers[index];
        manager.dispatcher.submit(ticket, Normal, RUNTIME);
        let fleet = manager.dispatcher.fleet();
        let ahead = manager.dispatcher.ahead_of(ticket).unwrap_or_default();
        let told = manager.estimate.wait(ahead, fleet.slots(), fleet.free(now));
        if let Some(task) = self.measure.task(ticket.0) {
            task.told = told.map(nanos);
        }
        self.go_on(index, None);
    }

    /// What is to be done after something has happened to a manager.
    fn go_on(&mut self, manager: usize, first: Option<Order>) {
        let now = self.now();
        let Self { managers, chance, .. } = self;
        let it = &mut managers[manager];
        let mut orders: Vec<_> = first.into_iter().collect();
        orders.extend(it.dispatcher.orders(now, &mut || chance.next()));
        let wake = it.dispatcher.next_wake(now).map(nanos);
        if let Some(at) = wake
            && it.wake.is_none_or(|planned| at < planned)
        {
            it.wake = Some(at);
            self.agenda.plan(at, Event::Wake { manager });
        }
        for order in orders {
            if let Order::Execute { ticket, executor } = order {
                let run =
                    Run { at: executor, ordered: self.now, fence: 0, polled: false, ended: false };
                self.runs.insert(ticket, run);
            }
            self.send(Event::Heard(order));
        }
        if self.recovering && self.managers.iter().all(|it| it.dispatcher.waiting() == 0) {
            self.recovering = false;
            let at = self.scenario.burst.map_or(0, |burst| nanos(burst.at));
            self.measure.recovered = Some(self.now - at);
        }
    }

    fn send(&mut self, event: Event) {
        self.measure.messages += 1;
        self.agenda.plan(self.now + self.hop, event);
    }

    fn heard(&mut self, order: &Order) {
        let now = self.now();
        match order {
            Order::Execute { ticket, executor } => {
                let answer = match self.slots.execute(*executor, ticket.0, now) {
                    Ok(fence) => {
                        self.started(*ticket, fence);
                        Answer::Accepted
                    }
                    Err(ExecuteRefused::Full) => {
                        self.measure.wasted += 1;
                        Answer::Full { retry_after: RETRY_AFTER }
                    }
                    Err(_) => Answer::Gone,
                };
                self.send(Event::Answered { ticket: *ticket, answer });
            }
            Order::Reserve { ticket, executor } => {
                let answer = match self.slots.reserve(*executor, ticket.0, now) {
                    Ok(()) => Answer::Accepted,
                    Err(_) => {
                        self.measure.wasted += 1;
                        Answer::Full { retry_after: RETRY_AFTER }
                    }
                };
                self.send(Event::Reserved { ticket: *ticket, answer });
            }
            Order::Lease { ticket, executors } => {
                let answer = self.ledger.lease(*ticket, executors);
                self.send(Event::Leased { ticket: *ticket, answer });
            }
            Order::Unlease { ticket } => {
                // Its reply changes nothing, but it is one.
                self.measure.messages += 1;
                let released_by = self.manager_of(*ticket);
                let next = self.ledger.unlease(*ticket).map(|first| self.manager_of(first));
                // Who gives back asks again by itself.
                if let Some(manager) = next.filter(|next| *next != released_by) {
                    self.send(Event::LedgerChanged { manager });
                }
            }
        }
    }

    fn started(&mut self, ticket: Ticket, fence: u64) {
        let (Some(task), Some(run)) = (self.measure.task(ticket.0), self.runs.get_mut(&ticket))
        else {
            return;
        };
        task.started = Some(self.now);
        run.fence = fence;
        self.agenda.plan(self.now + task.takes, Event::Ended(ticket));
    }

    fn ended(&mut self, ticket: Ticket) {
        let Some(run) = self.runs.get_mut(&ticket) else { return };
        run.ended = true;
        let Run { at, fence, polled, .. } = *run;
        self.slots.finish(at, ticket.0, fence);
        if polled {
            self.send(Event::Over(ticket));
        }
    }

    fn over(&mut self, ticket: Ticket) {
        let index = self.manager_of(ticket);
        let manager = &mut self.managers[index];
        if let Some(run) = self.runs.remove(&ticket) {
            manager.estimate.saw(Duration::from_nanos(self.now - run.ordered));
        }
        let undo = manager.dispatcher.finished(ticket);
        // Over one connection the ledger hears that the slot is free before it hears who wants it.
        if let Some(undo) = undo {
            self.send(Event::Heard(undo));
        }
        if self.placement == Placement::Semaphore {
            self.ask_ledger_again(index);
        }
        self.go_on(index, None);
    }

    fn ask_ledger_again(&mut self, manager: usize) {
        let now = self.now();
        for order in self.managers[manager].dispatcher.ledger_changed(now) {
            self.send(Event::Heard(order));
        }
    }
}

fn nanos(duration: Duration) -> Time {
    Time::try_from(duration.as_nanos()).unwrap_or(Time::MAX)
}
