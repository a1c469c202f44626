//! The seed's recommended loop, to compare with: a worker takes a task, asks every executor in random order, and
//! when all are full sleeps for min(2^attempt + U(0, 1), 60) s before it asks all again, at most 100 times. All
//! the while the task is the worker's only one. Who is not answered is taken for full, and what is accepted is not
//! looked after.

use super::fleet::{Fleet, Key, Network, Operation, Reply};
use super::load::TaskLoad;
use super::measure::Measure;
use super::setup::{Setup, nanos};
use super::{ExecutorsReport, ExecutorsScenario};
use crate::agenda::{Agenda, Time};
use crate::scenario::{Fault, FaultKind};
use std::collections::VecDeque;
use std::time::Duration;
use tidegate_core::capacity::{ExecutorId, Ticket};
use tidegate_core::rng::Rng;

const ATTEMPTS_MAX: u32 = 100;
const SLEEP_MAX_S: f64 = 60.0;
/// As [`Managers`](super::managers::Managers) has it.
const PATIENCE: u32 = 10;
/// The time after the load in which running tasks may end.
const DRAIN: Duration = Duration::from_secs(60);

pub(super) struct SeedLoop {
    now: Time,
    agenda: Agenda<Event>,
    fleet: Fleet,
    network: Network,
    faults: Vec<Fault>,
    queue: VecDeque<u64>,
    workers: Vec<Worker>,
    load: TaskLoad,
    arriving: bool,
    rng: Rng,
    measure: Measure,
    ended: Vec<bool>,
    burst: Option<(Time, u64)>,
    recovering: bool,
    horizon: Option<Time>,
    sample_every: Time,
}

#[derive(Default)]
struct Worker {
    held: Option<Held>,
    incarnation: u32,
    /// Faults that keep it down.
    down: u32,
}

/// The task that a worker has, and whom it has yet to ask.
struct Held {
    task: u64,
    attempt: u32,
    to_ask: Vec<ExecutorId>,
}

enum Event {
    Arrives,
    Burst,
    Sample,
    /// A worker's request has come to an executor.
    Asked {
        worker: usize,
        incarnation: u32,
        executor: ExecutorId,
        task: u64,
        deadline: Time,
    },
    /// Its reply has come to the worker.
    Reply {
        worker: usize,
        incarnation: u32,
        accepted: bool,
    },
    /// A worker has slept enough.
    Awake {
        worker: usize,
        incarnation: u32,
    },
    Ended {
        at: ExecutorId,
        incarnation: u32,
        key: Key,
    },
    Fault {
        index: usize,
        begins: bool,
    },
}

// === impl SeedLoop ===

impl SeedLoop {
    pub(super) fn new(setup: Setup) -> Self {
        let Setup { executors, hop, lease, past_max, faults, .. } = setup;
        Self {
            now: 0,
            agenda: Agenda::default(),
            fleet: Fleet::new(executors, past_max, lease, None),
            network: Network::new(hop, &faults, setup.network_rng),
            faults,
            queue: VecDeque::new(),
            workers: (0..executors).map(|_| Worker::default()).collect(),
            load: setup.load,
            arriving: true,
            rng: setup.rng,
            measure: setup.measure,
            ended: Vec::new(),
            burst: None,
            recovering: false,
            horizon: setup.horizon,
            sample_every: setup.sample_every,
        }
    }

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
            let all_are_here = self.measure.tasks.len() as u64 >= scenario.tasks;
            let is_over = scenario.burst.is_none() && all_are_here;
            if now > until || self.measure.recovered.is_some() || is_over {
                break;
            }
            self.now = now;
            self.happens(event);
        }
        self.measure.report(scenario)
    }

    /// The whole scenario, and after its load until everything is over, or nearly.
    pub(super) fn play(mut self) -> Measure {
        let horizon = self.horizon.unwrap_or_default();
        self.plan_arrival();
        self.agenda.plan(0, Event::Sample);
        for (index, fault) in self.faults.iter().enumerate() {
            let at = |s: f64| (s * 1e9) as Time;
            self.agenda.plan(at(fault.from_s), Event::Fault { index, begins: true });
            self.agenda.plan(at(fault.until_s), Event::Fault { index, begins: false });
        }
        while let Some((now, event)) = self.agenda.next() {
            let all_over = !self.arriving && self.measure.over == self.measure.tasks.len() as u64;
            if now >= horizon && (all_over || now > horizon + nanos(DRAIN)) {
                break;
            }
            self.now = now;
            self.happens(event);
        }
        self.measure.horizon = horizon;
        // Who still waits is late, not lost.
        let held = self.workers.iter().filter(|worker| worker.held.is_some()).count();
        let waiting = (self.queue.len() + held) as u64;
        let not_over = self.measure.tasks.len() as u64 - self.measure.over;
        self.measure.lost = not_over.saturating_sub(waiting + self.measure.running());
        self.measure
    }

    fn plan_arrival(&mut self) {
        match self.load.next_arrival() {
            Some(at) => self.agenda.plan(at, Event::Arrives),
            None => self.arriving = false,
        }
    }

    fn happens(&mut self, event: Event) {
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
            Event::Sample => {
                self.measure.sample(self.now);
                let next = self.now + self.sample_every;
                if self.horizon.is_some_and(|horizon| next <= horizon) {
                    self.agenda.plan(next, Event::Sample);
                }
            }
            Event::Asked { worker, incarnation, executor, task, deadline } => {
                self.asked(worker, incarnation, executor, task, deadline);
            }
            Event::Reply { worker, incarnation, accepted }
                if self.workers[worker].incarnation == incarnation =>
            {
                if accepted {
                    self.workers[worker].held = None;
                    self.take_next(worker);
                } else {
                    self.ask_next(worker);
                }
            }
            Event::Awake { worker, incarnation }
                if self.workers[worker].incarnation == incarnation =>
            {
                self.begin_attempt(worker);
            }
            Event::Reply { .. } | Event::Awake { .. } => {}
            Event::Ended { at, incarnation, key } => self.ended(at, incarnation, key),
            Event::Fault { index, begins } => self.fault(index, begins),
        }
        let nobody_waits =
            || self.queue.is_empty() && self.workers.iter().all(|it| it.held.is_none());
        if self.recovering && nobody_waits() {
            self.recovering = false;
            let at = self.burst.map_or(0, |(at, _)| at);
            self.measure.recovered = Some(self.now - at);
        }
    }

    fn arrives(&mut self) {
        let takes = self.load.task_time();
        self.queue.push_back(self.measure.arrives(self.now, takes));
        self.ended.push(false);
        let idle = self.workers.iter().position(|it| it.held.is_none() && it.down == 0);
        if let Some(idle) = idle {
            self.take_next(idle);
        }
    }

    fn take_next(&mut self, worker: usize) {
        if self.workers[worker].down > 0 {
            return;
        }
        let Some(task) = self.queue.pop_front() else { return };
        self.workers[worker].held = Some(Held { task, attempt: 0, to_ask: Vec::new() });
        self.begin_attempt(worker);
    }

    /// All executors, shuffled.
    fn begin_attempt(&mut self, worker: usize) {
        let mut to_ask: Vec<_> = (0..self.fleet.len()).map(ExecutorId).collect();
        for last in (1..to_ask.len()).rev() {
            let other = (self.rng.next_u64() % (last as u64 + 1)) as usize;
            to_ask.swap(last, other);
        }
        if let Some(held) = &mut self.workers[worker].held {
            held.to_ask = to_ask;
        }
        self.ask_next(worker);
    }

    fn ask_next(&mut self, worker: usize) {
        let incarnation = self.workers[worker].incarnation;
        let Some(held) = &mut self.workers[worker].held else { return };
        if let Some(executor) = held.to_ask.pop() {
            let task = held.task;
            self.measure.message(self.now);
            let deadline = Network::deadline(self.now, Operation::Execute);
            let arrives = self.network.pass(self.now, executor);
            if arrives.is_none_or(|at| at > deadline) {
                self.agenda.plan(deadline, Event::Reply { worker, incarnation, accepted: false });
            }
            if let Some(at) = arrives {
                let asked = Event::Asked { worker, incarnation, executor, task, deadline };
                self.agenda.plan(at, asked);
            }
            return;
        }
        // All are full.
        let backoff_s = (1_u64 << held.attempt.min(6)) as f64 + self.rng.uniform();
        held.attempt += 1;
        let given_up = held.attempt >= ATTEMPTS_MAX;
        let sleep = Duration::from_secs_f64(backoff_s.min(SLEEP_MAX_S));
        if given_up {
            self.workers[worker].held = None;
            return self.take_next(worker);
        }
        self.agenda.plan(self.now + sleep.as_nanos() as Time, Event::Awake { worker, incarnation });
    }

    fn asked(
        &mut self,
        worker: usize,
        incarnation: u32,
        at: ExecutorId,
        task: u64,
        deadline: Time,
    ) {
        let accepted = self.fleet.is_up(at) && self.execute(at, task);
        if self.now > deadline {
            return;
        }
        self.measure.message(self.now);
        let (accepted, told_at) = match self.network.pass(self.now, at) {
            Some(told_at) if told_at <= deadline => (accepted, told_at),
            _ => (false, deadline),
        };
        self.agenda.plan(told_at, Event::Reply { worker, incarnation, accepted });
    }

    fn execute(&mut self, at: ExecutorId, task: u64) -> bool {
        let Some(known) = self.measure.task(task).copied() else { return false };
        // It numbers no attempts: another executor is another start.
        let key = Key { ticket: Ticket(task), attempt: 1 };
        let begun = self.fleet.execute(at, key, known.takes, self.now);
        self.measure.decisions += 1;
        if begun.first {
            self.measure.twice += u64::from(known.started.is_some());
            self.measure.starts(task, self.now);
            let incarnation = self.fleet.incarnation(at);
            self.agenda.plan(self.now + known.takes, Event::Ended { at, incarnation, key });
        }
        if begun.reply == Reply::Full {
            self.measure.waste(self.now);
        }
        matches!(begun.reply, Reply::Taken { .. })
    }

    fn ended(&mut self, at: ExecutorId, incarnation: u32, key: Key) {
        if !self.fleet.is_up(at) || self.fleet.incarnation(at) != incarnation {
            return;
        }
        let Some(execution) = self.fleet.finish(at, key, false, self.now) else { return };
        self.measure.stops(execution.began, self.now);
        if let Some(ended) = self.ended.get_mut(key.ticket.0 as usize) {
            self.measure.over += u64::from(!std::mem::replace(ended, true));
        }
    }

    /// Kills a worker, which loses its task, or an executor, which loses what it runs: no other part knows of
    /// them.
    fn fault(&mut self, index: usize, begins: bool) {
        let fault = self.faults[index].clone();
        let hit = (0..self.fleet.len()).filter(|number| fault.hits(*number as u16));
        for number in hit {
            match (fault.kind, begins) {
                (FaultKind::Dead, true) => {
                    for (_, execution) in self.fleet.kill(ExecutorId(number)).unwrap_or_default() {
                        self.measure.stops(execution.began, self.now);
                    }
                }
                (FaultKind::Dead, false) => self.fleet.revive(ExecutorId(number), self.now),
                (FaultKind::ManagerDead, true) => {
                    let worker = &mut self.workers[number as usize];
                    worker.down += 1;
                    worker.incarnation += 1;
                    worker.held = None;
                }
                (FaultKind::ManagerDead, false) => {
                    let worker = &mut self.workers[number as usize];
                    worker.down = worker.down.saturating_sub(1);
                    self.take_next(number as usize);
                }
                _ => return,
            }
        }
    }
}
