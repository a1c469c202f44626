use super::invariants::Invariants;
use super::ledger::SimLedger;
use super::manager::{Manager, RESERVED_FOR};
use crate::agenda::{Agenda, Time};
use crate::executors::fleet::{Caller, Fleet, Key, Network, Operation, POLL_MAX, Reply, Request};
use crate::executors::load::TaskLoad;
use crate::executors::measure::Measure;
use crate::executors::setup::{Setup, nanos};
use crate::executors::{ExecutorFlaw, ExecutorsReport, ExecutorsScenario};
use crate::scenario::Fault;
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate_core::capacity::{ExecutorId, Order, Placement, SlotLease, Ticket};
use tidegate_core::rng::Rng;
use tidegate_core::task::ExecutionKey;

/// The multiple of the theoretical recovery time after which a burst counts as not recovered.
const PATIENCE: u32 = 10;

/// Managers, each with the dispatcher that ships, the executors and a ledger, with messages that take time between
/// them, and what goes wrong with all of these.
///
/// `manager.rs` has what a manager knows, `driver.rs` how it brings an attempt to its end, `restarts.rs` what is
/// killed and comes back.
pub struct Managers {
    pub placement: Placement,
    pub now: Time,
    pub agenda: Agenda<Event>,
    pub managers: Vec<Manager>,
    pub fleet: Fleet,
    pub network: Network,
    pub ledger: SimLedger,
    /// Questions that executors hold back until what they are about has ended.
    polls: BTreeMap<(ExecutorId, Key), Request>,
    pub faults: Vec<Fault>,
    pub lease: Duration,
    pub flaw: Option<ExecutorFlaw>,
    load: TaskLoad,
    pub arriving: bool,
    pub rng: Rng,
    pub measure: Measure,
    pub invariants: Invariants,
    burst: Option<(Time, u64)>,
    /// True between the burst and the moment in which the queue is empty.
    recovering: bool,
    pub horizon: Option<Time>,
    pub sample_every: Time,
}

pub enum Event {
    Arrives,
    Burst,
    Sample,
    /// A request has reached the executor.
    Heard(Request),
    /// A reply has reached the caller.
    Reply(Request, Reply),
    LedgerHeard(Caller, LedgerRequest),
    LedgerReply(Caller, Option<SlotLease>),
    /// A slot that should have been held is held again.
    Regained(Caller, SlotLease),
    LedgerChanged {
        manager: usize,
    },
    Ended {
        at: ExecutorId,
        incarnation: u32,
        key: Key,
    },
    /// A long poll has timed out.
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
    /// A caller whose executor was unreachable retries.
    AskAgain(Caller),
    /// The backoff of a lost task is over.
    Later(Caller),
    Probe {
        manager: usize,
        incarnation: u32,
    },
    Renew {
        manager: usize,
        incarnation: u32,
    },
    Fault {
        index: usize,
        begins: bool,
    },
}

pub enum LedgerRequest {
    Lease { holder: ExecutionKey, executors: Vec<ExecutorId> },
    Release(SlotLease),
    Withdraw(ExecutionKey),
    Regain { holder: ExecutionKey, at: ExecutorId },
    Renew { lease: SlotLease, at: ExecutorId },
}

// === impl Managers ===

impl Managers {
    pub fn new(setup: Setup, placement: Placement) -> Self {
        let Setup { executors, managers, hop, lease, past_max, faults, flaw, .. } = setup;
        let mut invariants = Invariants::new(executors, &faults);
        if placement == Placement::Pull && managers == 1 {
            // The end is reported one hop after it, if the request for it is there; and that is there two hops
            // after the start.
            invariants.idle_bound = Some(3 * hop);
            invariants.in_order = faults.is_empty();
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
            fleet: Fleet::new(executors, past_max, lease, flaw),
            network: Network::new(hop, &faults, setup.network_rng),
            ledger: SimLedger::new(executors, lease),
            polls: BTreeMap::new(),
            faults,
            lease,
            flaw,
            load: setup.load,
            arriving: true,
            rng: setup.rng,
            measure: setup.measure,
            invariants,
            burst: None,
            recovering: false,
            horizon: setup.horizon,
            sample_every: setup.sample_every,
        }
    }

    /// Runs until the last task has arrived, or with a burst until the queue is empty.
    pub fn run(mut self, scenario: &ExecutorsScenario) -> ExecutorsReport {
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
        debug_assert_eq!(self.invariants.verdict(), Ok(()));
        self.measure.report(scenario)
    }

    pub fn plan_arrival(&mut self) {
        match self.load.next_arrival() {
            Some(at) => self.agenda.plan(at, Event::Arrives),
            None => self.arriving = false,
        }
    }

    /// Returns the manager of a task: tasks are assigned in turn.
    pub fn manager_of(&self, ticket: Ticket) -> usize {
        usize::try_from(ticket.0).unwrap_or_default() % self.managers.len()
    }

    pub fn happens(&mut self, now: Time, event: Event) {
        self.now = now;
        self.invariants.now = now;
        self.invariants.events += 1;
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
            Event::Heard(request) => self.heard(request),
            Event::Reply(request, reply) => self.replied(request, reply),
            Event::LedgerHeard(from, ask) => self.ledger_heard(from, ask),
            Event::LedgerReply(from, lease) => self.leased(from, lease),
            Event::Regained(from, lease) => self.regained(from, lease),
            Event::LedgerChanged { manager } => {
                self.ask_ledger_again(manager);
                self.go_on(manager, None);
            }
            Event::Ended { at, incarnation, key } => {
                if self.fleet.is_up(at) && self.fleet.incarnation(at) == incarnation {
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
            Event::Probe { manager, incarnation } => self.probe(manager, incarnation),
            Event::Renew { manager, incarnation } => self.renew(manager, incarnation),
            Event::Fault { index, begins } => self.fault(index, begins),
        }
    }

    fn arrives(&mut self) {
        let takes = self.load.task_time();
        let ticket = Ticket(self.measure.arrives(self.now, takes));
        self.invariants.arrives();
        let index = self.manager_of(ticket);
        if self.managers[index].down > 0 {
            // The client retries until the manager is back.
            return self.managers[index].outside.push_back(ticket);
        }
        self.submitted(index, ticket);
        self.go_on(index, None);
    }

    pub fn submitted(&mut self, index: usize, ticket: Ticket) {
        let now = Duration::from_nanos(self.now);
        let estimate = self.managers[index].submit(ticket, now);
        if let Some(task) = self.measure.task(ticket.0) {
            task.estimated_wait = estimate.map(nanos);
        }
    }

    /// Executes the orders that follow a change of a manager.
    pub fn go_on(&mut self, manager: usize, first: Option<Order>) {
        let now = Duration::from_nanos(self.now);
        let it = &mut self.managers[manager];
        if it.down > 0 {
            return;
        }
        self.invariants.queue(it.dispatcher.waiting());
        let mut orders: Vec<_> = first.into_iter().collect();
        let rng = &mut self.rng;
        orders.extend(it.dispatcher.orders(now, &mut || rng.next_u64()));
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
        self.invariants.queue(waiting);
        if self.recovering && self.managers.iter().all(|it| it.dispatcher.waiting() == 0) {
            self.recovering = false;
            let at = self.burst.map_or(0, |(at, _)| at);
            self.measure.recovered = Some(self.now - at);
        }
    }

    /// Sends a message to or from the ledger. None of those is lost.
    pub fn send(&mut self, event: Event) {
        self.measure.message(self.now);
        self.agenda.plan(self.now + self.network.hop, event);
    }

    /// Sends a request to an executor. Every request gets a reply or a timeout.
    pub fn ask(&mut self, from: Caller, to: ExecutorId, ask: Operation) {
        let deadline = Network::deadline(self.now, ask);
        let request = Request { from, to, ask, deadline: Some(deadline) };
        let is_counted = !matches!(ask, Operation::Capacity { .. });
        if is_counted {
            self.measure.message(self.now);
        }
        match self.network.pass(self.now, to) {
            Some(at) if at <= deadline => self.agenda.plan(at, Event::Heard(request)),
            arrives => {
                self.agenda.plan(deadline, Event::Reply(request, Reply::Silence));
                if let Some(at) = arrives {
                    let late = Request { deadline: None, ..request };
                    self.agenda.plan(at, Event::Heard(late));
                }
            }
        }
    }

    /// Replies to a request, if the caller still waits.
    pub fn reply(&mut self, request: Request, reply: Reply) {
        let Some(deadline) = request.deadline else { return };
        if !matches!(request.ask, Operation::Capacity { .. }) {
            self.measure.message(self.now);
        }
        match self.network.pass(self.now, request.to) {
            Some(at) if at <= deadline => self.agenda.plan(at, Event::Reply(request, reply)),
            _ => self.agenda.plan(deadline.max(self.now), Event::Reply(request, Reply::Silence)),
        }
    }

    /// Handles a request at an executor.
    fn heard(&mut self, request: Request) {
        let Request { from: Caller { key, .. }, to, ask, .. } = request;
        if !self.fleet.is_up(to) {
            return self.reply(request, Reply::Refused);
        }
        self.measure.decisions += 1;
        let reply = match ask {
            Operation::Execute => self.execute(to, key),
            Operation::Reserve => {
                let reply = self.fleet.reserve(to, key, RESERVED_FOR.min(self.lease), self.now);
                self.plan_expiry(to);
                reply
            }
            Operation::Follow => match self.fleet.follow(to, key, self.now) {
                None => Reply::Nothing,
                Some(execution) => match execution.over {
                    Some(stopped) => Reply::Over { fence: execution.fence, stopped },
                    None => {
                        self.polls.insert((to, key), request);
                        let held_until = self.now + nanos(POLL_MAX);
                        if execution.ends > held_until {
                            self.agenda.plan(held_until, Event::PollOver { at: to, key });
                        }
                        return;
                    }
                },
            },
            Operation::Delete => {
                self.fleet.delete(to, key, self.now);
                self.invariants.gives_up(to, self.fleet.incarnation(to), key);
                Reply::Deleted
            }
            Operation::Capacity { .. } => {
                let occupancy = self.fleet.occupancy(to, self.now);
                let taken = occupancy.map_or(0, |all| all.running + all.reserved);
                Reply::Capacity { taken }
            }
        };
        if reply == Reply::Full {
            self.measure.waste(self.now);
        }
        self.reply(request, reply);
    }

    fn execute(&mut self, at: ExecutorId, key: Key) -> Reply {
        let Some(takes) = self.measure.task(key.ticket.0).map(|task| task.takes) else {
            return Reply::Gone;
        };
        let begun = self.fleet.execute(at, key, takes, self.now);
        if let (true, Reply::Taken { fence }) = (begun.first, begun.reply) {
            self.invariants.starts(at, key, fence, &self.fleet);
            self.measure.starts(key.ticket.0, self.now);
            let incarnation = self.fleet.incarnation(at);
            self.agenda.plan(self.now + takes, Event::Ended { at, incarnation, key });
            self.plan_expiry(at);
        }
        begun.reply
    }

    fn plan_expiry(&mut self, at: ExecutorId) {
        if let Some(expires) = self.fleet.plan_expiry(at) {
            self.agenda.plan(expires, Event::Expires { at });
        }
    }

    fn expire(&mut self, at: ExecutorId) {
        if !self.fleet.is_up(at) {
            return;
        }
        for key in self.fleet.expire(at, self.now) {
            self.stop(at, key, true);
        }
        self.plan_expiry(at);
    }

    /// Ends an execution.
    fn stop(&mut self, at: ExecutorId, key: Key, stopped: bool) {
        let Some(execution) = self.fleet.finish(at, key, stopped, self.now) else { return };
        self.measure.stops(execution.began, self.now);
        if let Some(request) = self.polls.remove(&(at, key)) {
            self.reply(request, Reply::Over { fence: execution.fence, stopped });
        }
    }

    /// Replies to a long poll: the execution still runs.
    fn answer_poll(&mut self, at: ExecutorId, key: Key) {
        let Some(request) = self.polls.remove(&(at, key)) else { return };
        let reply = match self.fleet.follow(at, key, self.now) {
            Some(execution) => Reply::Runs { fence: execution.fence },
            None => Reply::Nothing,
        };
        self.reply(request, reply);
    }

    /// Ends the long polls at an executor that is killed.
    pub fn cut_polls(&mut self, at: ExecutorId) {
        let last = Key { ticket: Ticket(u64::MAX), attempt: u32::MAX };
        let first = Key { ticket: Ticket(0), attempt: 0 };
        let cut: Vec<_> = self.polls.range((at, first)..=(at, last)).map(|(key, _)| *key).collect();
        for key in cut {
            if let Some(request) = self.polls.remove(&key) {
                self.reply(request, Reply::Silence);
            }
        }
    }
}
