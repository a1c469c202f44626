use super::world::{Flaw, Message, Way, What, World};
use std::collections::BTreeMap;
use tidegate_core::task::{EndReason, Ending, TaskEvent, TaskOutcome, TaskState, TaskStatus};

/// Memory of a manager: the tasks it believes to own.
#[derive(Clone, Default, Hash)]
pub struct Manager {
    work: BTreeMap<u8, Work>,
}

#[derive(Clone, Hash)]
struct Work {
    state: TaskState,
    doing: Doing,
}

/// Answer that it waits for.
#[derive(Clone, Copy, Hash, PartialEq, Eq)]
enum Doing {
    Nothing,
    Reserving,
    Executing(Option<u64>),
    /// Sent, or possibly sent before a restart: its outcome is being asked for.
    Asking,
    /// Nobody has heard of it: let nobody hear of it later.
    Cancelling,
}

// === impl World ===

impl World {
    /// A manager begins with what is durable, and knows nothing else.
    pub fn restart(&mut self, manager: u8) {
        let own =
            |state: &TaskState| *state.owner == manager.to_string() && !state.status.is_over();
        let tasks = (0..).zip(&self.tasks).filter(|(_, state)| own(state));
        let work =
            tasks.map(|(task, state)| (task, Work::found(TaskState::clone(state)))).collect();
        *self.manager_mut(manager) = Manager { work };
        if self.way == Way::Direct {
            self.network.retain(|message, _| message.manager != manager);
        }
    }

    /// A manager takes over what is another's, who may live and not know of it.
    pub fn adopt(&mut self, manager: u8, task: u8) {
        let from = TaskState::clone(&self.tasks[usize::from(task)]);
        let event = TaskEvent::Adopted { owner: manager.to_string().into() };
        if let Some(state) = self.keep(task, &from, &event) {
            self.manager_mut(manager).work.insert(task, Work::found(state));
        }
    }

    /// Spontaneous steps of a manager: dispatches queued tasks, and asks again if no message is in flight.
    pub fn manager_steps(&self, manager: u8, steps: &mut Vec<Self>) {
        for (task, work) in &self.managers[usize::from(manager)].work {
            if work.state.assignment.is_none() {
                if work.state.attempt < self.attempts_max {
                    steps
                        .extend((0..self.executors.len()).map(|to| self.place(manager, *task, to)));
                }
                continue;
            }
            let about = |message: &Message| message.manager == manager && message.task == *task;
            if !self.network.keys().any(about) {
                self.ask_again(manager, *task, work, steps);
            }
        }
    }

    fn place(&self, manager: u8, task: u8, to: usize) -> Self {
        let mut next = self.clone();
        let event = TaskEvent::Dispatching { executor: to.to_string().into() };
        if next.step(manager, task, &event) {
            match next.way {
                Way::Reserve => next.go_on(manager, task, Doing::Reserving),
                Way::Direct => next.go_on(manager, task, Doing::Executing(None)),
            }
            if next.flaw == Flaw::ProvisioningTooEarly {
                let attempt = next.tasks[usize::from(task)].attempt;
                next.step(manager, task, &TaskEvent::Accepted { attempt, fence: 0 });
            }
        }
        next
    }

    /// Nothing was heard in time.
    fn ask_again(&self, manager: u8, task: u8, work: &Work, steps: &mut Vec<Self>) {
        let doing = match (self.flaw, work.doing) {
            (Flaw::RepeatsAfterCrash, doing) => doing,
            // Without a reservation the same word could start it twice: in this life of the executor and the next.
            (_, Doing::Executing(None)) => Doing::Asking,
            (_, doing) => doing,
        };
        let mut next = self.clone();
        next.go_on(manager, task, doing);
        if self.flaw == Flaw::RetryElsewhere && matches!(doing, Doing::Executing(_)) {
            let mut elsewhere = self.clone();
            let work = elsewhere.manager_mut(manager).work.get_mut(&task);
            if let Some(assignment) = work.and_then(|work| work.state.assignment.as_mut()) {
                assignment.executor =
                    if &*assignment.executor == "0" { "1".into() } else { "0".into() };
            }
            elsewhere.go_on(manager, task, Doing::Reserving);
            steps.push(elsewhere);
        }
        steps.push(next);
    }

    /// An answer has come, perhaps an old one.
    pub fn hear(&mut self, message: &Message) {
        let Message { manager, task, attempt, what, executor } = message.clone();
        let Some(work) = self.managers[usize::from(manager)].work.get(&task).cloned() else {
            return;
        };
        let at = work.state.assignment.as_ref().map(|assignment| assignment.executor.to_string());
        if work.state.attempt != attempt || at != Some(executor.to_string()) {
            return;
        }
        let accepted = work.state.status != TaskStatus::Queued;
        match (work.doing, what) {
            (Doing::Reserving, What::Reserved(fence)) => {
                self.go_on(manager, task, Doing::Executing(Some(fence)));
            }
            (Doing::Reserving | Doing::Executing(None), What::Full) => {
                self.step(manager, task, &TaskEvent::Refused { attempt });
            }
            (Doing::Reserving, What::Came) => self.go_on(manager, task, Doing::Asking),
            // It has run out, or the executor is not the one that gave it. Either way nobody will start it with
            // this.
            (Doing::Executing(Some(_)), What::Gone) | (_, What::Ahead) => {
                self.step(manager, task, &TaskEvent::Lost { attempt });
            }
            (Doing::Executing(_), What::Started(fence)) | (Doing::Asking, What::Runs(fence)) => {
                self.accept(manager, task, attempt, fence);
                self.wait(manager, task, Doing::Asking);
            }
            (Doing::Asking | Doing::Cancelling, What::Over(fence, outcome)) => {
                self.accept(manager, task, attempt, fence);
                self.end(manager, task, attempt, outcome);
            }
            // It was there, and is not: the executor has forgotten it with everything else.
            (Doing::Asking, What::Unknown) if accepted => {
                self.step(manager, task, &TaskEvent::Lost { attempt });
            }
            (Doing::Asking, What::Unknown) => self.go_on(manager, task, Doing::Cancelling),
            _ => {}
        }
    }

    fn accept(&mut self, manager: u8, task: u8, attempt: u32, fence: u64) {
        let work = self.managers[usize::from(manager)].work.get(&task);
        if work.is_some_and(|work| work.state.status == TaskStatus::Queued) {
            self.step(manager, task, &TaskEvent::Accepted { attempt, fence });
        }
    }

    fn end(&mut self, manager: u8, task: u8, attempt: u32, outcome: TaskOutcome) {
        let ending = Ending::new(outcome, EndReason::Exit);
        self.step(manager, task, &TaskEvent::Ended { attempt, ending });
    }

    /// Keeps what follows from an event. Whoever is told that it is not the newest any more lets go of the task.
    fn step(&mut self, manager: u8, task: u8, event: &TaskEvent) -> bool {
        let Some(work) = self.manager_mut(manager).work.remove(&task) else {
            return false;
        };
        let Some(state) = self.keep(task, &work.state, event) else { return false };
        if !state.status.is_over() {
            let doing = if state.assignment.is_some() { work.doing } else { Doing::Nothing };
            self.manager_mut(manager).work.insert(task, Work { state, doing });
        }
        true
    }

    fn wait(&mut self, manager: u8, task: u8, doing: Doing) {
        if let Some(work) = self.manager_mut(manager).work.get_mut(&task) {
            work.doing = doing;
        }
    }

    /// Sends what is next to be asked, and waits for the answer.
    fn go_on(&mut self, manager: u8, task: u8, doing: Doing) {
        self.wait(manager, task, doing);
        let Some(work) = self.managers[usize::from(manager)].work.get(&task) else { return };
        let what = match doing {
            Doing::Nothing => return,
            Doing::Reserving => What::Reserve,
            Doing::Executing(with) => What::Execute(with),
            Doing::Asking => What::Ask,
            Doing::Cancelling => What::Cancel,
        };
        let assignment = work.state.assignment.as_ref();
        let Some(executor) = assignment.and_then(|assignment| assignment.executor.parse().ok())
        else {
            return;
        };
        let attempt = work.state.attempt;
        self.send(Message { manager, executor, task, attempt, what });
    }
}

// === impl Work ===

impl Work {
    /// A task as the store has it. Where it may have been sent somewhere, that has to be found out first.
    fn found(state: TaskState) -> Self {
        let doing = if state.assignment.is_some() { Doing::Asking } else { Doing::Nothing };
        Self { state, doing }
    }
}
