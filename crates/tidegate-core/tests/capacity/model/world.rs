use super::executor::Executor;
use super::manager::Manager;
use super::search::Model;
use std::collections::BTreeMap;
use std::rc::Rc;
use tidegate_core::admission::MessagePriority;
use tidegate_core::task::{
    ExecutionKey, TaskEvent, TaskId, TaskOutcome, TaskSpec, TaskState, TaskStatus,
};

/// Protocol by which managers dispatch tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// Reserve, then execute with the reservation. A message may come at any time, also after its receiver has
    /// died and lives again.
    Reserve,
    /// Execute at once, and once: what became of it is asked for, not tried again. A message dies with the
    /// connection it is on, and that with either end.
    Direct,
}

/// Deliberate defect of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flaw {
    None,
    /// An executor starts the same as often as it is asked to.
    NoIdempotency,
    /// An executor starts what comes with a reservation, whether it is still there or not.
    NoValidation,
    /// A manager that hears nothing tries the same attempt elsewhere.
    RetryElsewhere,
    /// A manager that hears nothing sends the same again, though the executor may have died and forgotten it.
    RepeatsAfterCrash,
    /// A manager calls a task accepted when it has found a free executor, as the seed's first loop does.
    ProvisioningTooEarly,
    /// The store takes every state it is given.
    NoVersions,
}

/// Faults that may still be injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Faults {
    pub losses: u8,
    pub doubles: u8,
    pub manager_crashes: u8,
    pub executor_crashes: u8,
    pub expiries: u8,
    pub adoptions: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Message {
    pub manager: u8,
    pub executor: u8,
    pub task: u8,
    pub attempt: u32,
    pub what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum What {
    // To an executor.
    Reserve,
    Execute(Option<u64>),
    Ask,
    Cancel,
    // From one.
    Reserved(u64),
    Full,
    Came,
    Started(u64),
    Gone,
    Unknown,
    Runs(u64),
    Over(u64, TaskOutcome),
    Ahead,
}

#[derive(Clone, Hash)]
pub struct World {
    pub way: Way,
    pub flaw: Flaw,
    pub attempts_max: u32,
    pub tasks: Vec<Rc<TaskState>>,
    /// Shared by the states that differ in something else.
    pub managers: Vec<Rc<Manager>>,
    pub executors: Vec<Rc<Executor>>,
    /// Messages in flight, in any order, with their multiplicity.
    pub network: BTreeMap<Message, u8>,
    pub starts: BTreeMap<(u8, u32), u8>,
    pub ends: Vec<u8>,
    pub faults: Faults,
}

// === impl What ===

impl What {
    fn is_request(self) -> bool {
        matches!(self, Self::Reserve | Self::Execute(_) | Self::Ask | Self::Cancel)
    }
}

// === impl World ===

impl World {
    pub fn new(way: Way, flaw: Flaw, executors: usize, tasks: u8, attempts_max: u32) -> Self {
        let owner = |task: u8| (task % 2).to_string();
        let submitted = |task| Rc::new(TaskState::submitted(&owner(task), 0));
        let tasks: Vec<_> = (0..tasks).map(submitted).collect();
        let mut world = Self {
            way,
            flaw,
            attempts_max,
            managers: vec![Rc::default(); 2],
            executors: (0..executors).map(|_| Rc::new(Executor::new())).collect(),
            network: BTreeMap::new(),
            starts: BTreeMap::new(),
            ends: vec![0; tasks.len()],
            tasks,
            faults: Faults {
                losses: 0,
                doubles: 0,
                manager_crashes: 0,
                executor_crashes: 0,
                expiries: 0,
                adoptions: 0,
            },
        };
        for manager in 0..2 {
            world.restart(manager);
        }
        world
    }

    pub fn with(mut self, faults: Faults) -> Self {
        self.faults = faults;
        self
    }

    pub fn send(&mut self, message: Message) {
        // A second one of the same at the same time is what `double` is for.
        self.network.insert(message, 1);
    }

    pub fn executor_mut(&mut self, executor: usize) -> &mut Executor {
        Rc::make_mut(&mut self.executors[executor])
    }

    pub fn manager_mut(&mut self, manager: u8) -> &mut Manager {
        Rc::make_mut(&mut self.managers[usize::from(manager)])
    }

    pub fn started(&mut self, task: u8, attempt: u32) {
        *self.starts.entry((task, attempt)).or_insert(0) += 1;
    }

    /// Keeps a task's next state, if it follows from the newest.
    pub fn keep(&mut self, task: u8, from: &TaskState, event: &TaskEvent) -> Option<TaskState> {
        let next = from.after(event, &spec(), 0).ok()?;
        let kept = &mut self.tasks[usize::from(task)];
        if kept.version != from.version && self.flaw != Flaw::NoVersions {
            return None;
        }
        if next.status.is_over() {
            self.ends[usize::from(task)] += 1;
        }
        *kept = Rc::new(next.clone());
        Some(next)
    }

    fn deliver(&self, message: &Message) -> Self {
        let mut next = self.clone();
        next.take(message);
        match message.what.is_request() {
            true => next.serve(message),
            false => next.hear(message),
        }
        next
    }

    fn take(&mut self, message: &Message) {
        if let Some(count) = self.network.get_mut(message) {
            *count -= 1;
            if *count == 0 {
                self.network.remove(message);
            }
        }
    }

    fn faulty_steps(&self, steps: &mut Vec<Self>) {
        let mut with = |fault: fn(&mut Faults) -> &mut u8, change: &dyn Fn(&mut Self)| {
            let mut next = self.clone();
            let left = fault(&mut next.faults);
            if *left > 0 {
                *left -= 1;
                change(&mut next);
                steps.push(next);
            }
        };
        for (message, count) in &self.network {
            with(|faults| &mut faults.losses, &|next| next.take(message));
            if *count == 1 {
                with(|faults| &mut faults.doubles, &|next| {
                    next.network.insert(message.clone(), 2);
                });
            }
        }
        for manager in 0..2 {
            with(|faults| &mut faults.manager_crashes, &|next| next.restart(manager));
            for task in 0..self.tasks.len() {
                let state = &self.tasks[task];
                let other = state.owner.as_ref() != manager.to_string();
                if other && !state.status.is_over() {
                    with(|faults| &mut faults.adoptions, &|next| next.adopt(manager, task as u8));
                }
            }
        }
        for executor in 0..self.executors.len() {
            with(|faults| &mut faults.executor_crashes, &|next| next.crash(executor));
            with(|faults| &mut faults.expiries, &|next| {
                next.executor_mut(executor).expire();
            });
        }
    }

    fn crash(&mut self, executor: usize) {
        self.executor_mut(executor).crash();
        if self.way == Way::Direct {
            self.network.retain(|message, _| usize::from(message.executor) != executor);
        }
    }
}

impl Model for World {
    fn steps(&self) -> Vec<Self> {
        let mut steps: Vec<Self> =
            self.network.keys().map(|message| self.deliver(message)).collect();
        for manager in 0..2 {
            self.manager_steps(manager, &mut steps);
        }
        for executor in 0..self.executors.len() {
            for key in self.executors[executor].running() {
                let mut next = self.clone();
                next.executor_mut(executor).finish(&key, TaskOutcome::Succeeded);
                steps.push(next);
            }
        }
        self.faulty_steps(&mut steps);
        steps
    }

    fn wrong(&self) -> Option<&'static str> {
        if self.executors.iter().any(|executor| executor.is_overfull()) {
            return Some("running and reserved are more than the slots");
        }
        if self.starts.values().any(|starts| *starts > 1) {
            return Some("an attempt was started twice");
        }
        if self.executors.iter().any(|executor| executor.fence_fell) {
            return Some("a fence did not rise");
        }
        if self.ends.iter().any(|ends| *ends > 1) {
            return Some("a task ended twice");
        }
        for (task, state) in self.tasks.iter().enumerate() {
            let begun = matches!(state.status, TaskStatus::Provisioning | TaskStatus::Running);
            if begun && !self.starts.contains_key(&(task as u8, state.attempt)) {
                return Some("provisioning before an executor has accepted");
            }
            let succeeded = state.status == TaskStatus::Succeeded;
            if succeeded && !self.starts.contains_key(&(task as u8, state.attempt)) {
                return Some("it succeeded and never ran");
            }
        }
        None
    }

    fn is_done(&self) -> bool {
        let beyond =
            |state: &TaskState| state.assignment.is_none() && state.attempt >= self.attempts_max;
        self.tasks.iter().all(|state| state.status.is_over() || beyond(state))
    }
}

pub fn key(task: u8, attempt: u32) -> ExecutionKey {
    TaskId::new(&task.to_string()).unwrap().attempt(attempt)
}

pub fn spec() -> TaskSpec {
    TaskSpec {
        runtime: "sh".to_owned(),
        code: "true".to_owned(),
        args: Vec::new(),
        env: BTreeMap::new(),
        priority: MessagePriority::Normal,
        timeout_ms: 1_000,
        retries: 0,
    }
}
