//! The seed's recommended loop, to compare with: a worker takes a task, asks every executor in random order, and
//! when all are full sleeps for min(2^attempt + U(0, 1), 60) s before it asks all again, at most 100 times. All
//! the while the task is the worker's only one.

use super::load::TaskLoad;
use super::measure::Measure;
use super::slots::SlotTable;
use super::{ExecutorsReport, ExecutorsScenario};
use crate::agenda::{Agenda, Time};
use crate::random::SplitMix64;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use tidegate_core::capacity::ExecutorId;

const ATTEMPTS_MAX: u32 = 100;
const SLEEP_MAX_S: f64 = 60.0;
/// As [`Managers`](super::managers::Managers) has it.
const PATIENCE: u32 = 10;

pub(super) struct SeedLoop<'a> {
    scenario: &'a ExecutorsScenario,
    hop: Time,
    now: Time,
    agenda: Agenda<Event>,
    slots: SlotTable,
    queue: VecDeque<u64>,
    workers: Vec<Option<Held>>,
    runs: BTreeMap<u64, (ExecutorId, u64)>,
    load: TaskLoad,
    chance: SplitMix64,
    measure: Measure,
    recovering: bool,
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
    /// A worker's request has come to an executor.
    Asked {
        worker: usize,
        executor: ExecutorId,
    },
    /// Its reply has come to the worker.
    Told {
        worker: usize,
        accepted: bool,
    },
    /// A worker has slept enough.
    Awake {
        worker: usize,
    },
    Ended {
        task: u64,
    },
}

// === impl SeedLoop ===

impl<'a> SeedLoop<'a> {
    pub(super) fn new(scenario: &'a ExecutorsScenario) -> Self {
        let mut chance = SplitMix64::new(scenario.seed);
        let load = TaskLoad::new(scenario, &mut chance);
        Self {
            scenario,
            hop: scenario.hop.as_nanos() as Time,
            now: 0,
            agenda: Agenda::default(),
            slots: SlotTable::new(scenario.executors),
            queue: VecDeque::new(),
            workers: (0..scenario.executors).map(|_| None).collect(),
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
            until = (burst.at + theory * PATIENCE).as_nanos() as Time;
            self.agenda.plan(burst.at.as_nanos() as Time, Event::Burst);
        }
        while let Some((now, event)) = self.agenda.next() {
            let all_are_here = self.measure.tasks.len() as u64 >= self.scenario.tasks;
            let is_over = self.scenario.burst.is_none() && all_are_here;
            if now > until || self.measure.recovered.is_some() || is_over {
                break;
            }
            self.now = now;
            self.happens(event);
        }
        self.measure.report(self.scenario)
    }

    fn plan_arrival(&mut self) {
        if let Some(at) = self.load.next_arrival() {
            self.agenda.plan(at, Event::Arrives);
        }
    }

    fn happens(&mut self, event: Event) {
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
            Event::Asked { worker, executor } => self.asked(worker, executor),
            Event::Told { worker, accepted } => {
                if accepted {
                    self.workers[worker] = None;
                    self.take_next(worker);
                } else {
                    self.ask_next(worker);
                }
            }
            Event::Awake { worker } => self.begin_attempt(worker),
            Event::Ended { task } => {
                if let Some((executor, fence)) = self.runs.remove(&task) {
                    self.slots.finish(executor, task, fence);
                }
            }
        }
        let nobody_waits = self.queue.is_empty() && self.workers.iter().all(Option::is_none);
        if self.recovering && nobody_waits {
            self.recovering = false;
            let at = self.scenario.burst.map_or(0, |burst| burst.at.as_nanos() as Time);
            self.measure.recovered = Some(self.now - at);
        }
    }

    fn arrives(&mut self) {
        let takes = self.load.task_time();
        self.queue.push_back(self.measure.arrives(self.now, takes));
        if let Some(idle) = self.workers.iter().position(Option::is_none) {
            self.take_next(idle);
        }
    }

    fn take_next(&mut self, worker: usize) {
        let Some(task) = self.queue.pop_front() else { return };
        self.workers[worker] = Some(Held { task, attempt: 0, to_ask: Vec::new() });
        self.begin_attempt(worker);
    }

    /// All executors, shuffled.
    fn begin_attempt(&mut self, worker: usize) {
        let mut to_ask: Vec<_> = (0..self.scenario.executors).map(ExecutorId).collect();
        for last in (1..to_ask.len()).rev() {
            let other = (self.chance.next() % (last as u64 + 1)) as usize;
            to_ask.swap(last, other);
        }
        if let Some(held) = &mut self.workers[worker] {
            held.to_ask = to_ask;
        }
        self.ask_next(worker);
    }

    fn ask_next(&mut self, worker: usize) {
        let Some(held) = &mut self.workers[worker] else { return };
        if let Some(executor) = held.to_ask.pop() {
            self.measure.messages += 1;
            self.agenda.plan(self.now + self.hop, Event::Asked { worker, executor });
            return;
        }
        // All are full.
        let backoff_s = (1_u64 << held.attempt.min(6)) as f64 + self.chance.uniform();
        held.attempt += 1;
        let given_up = held.attempt >= ATTEMPTS_MAX;
        let sleep = Duration::from_secs_f64(backoff_s.min(SLEEP_MAX_S));
        if given_up {
            self.workers[worker] = None;
            return self.take_next(worker);
        }
        self.agenda.plan(self.now + sleep.as_nanos() as Time, Event::Awake { worker });
    }

    fn asked(&mut self, worker: usize, executor: ExecutorId) {
        let Some(Held { task, .. }) = self.workers[worker] else { return };
        let granted = self.slots.execute(executor, task, Duration::from_nanos(self.now));
        match granted {
            Ok(fence) => {
                self.runs.insert(task, (executor, fence));
                if let Some(known) = self.measure.task(task) {
                    known.started = Some(self.now);
                    self.agenda.plan(self.now + known.takes, Event::Ended { task });
                }
            }
            Err(_) => self.measure.wasted += 1,
        }
        self.measure.messages += 1;
        let accepted = granted.is_ok();
        self.agenda.plan(self.now + self.hop, Event::Told { worker, accepted });
    }
}
