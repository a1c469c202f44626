use super::command::Command;
use super::{DeskError, ExecutorList, TaskDesk, TaskList, TaskNotice, TaskView, Watch};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use tidegate::MessagePriority;
use tidegate::task::{OutputChunk, TaskId, TaskStatus};
use tokio::sync::{broadcast, mpsc};

/// So few that a watcher that does not read is soon behind.
const NOTICES: usize = 8;

/// Stands in for the manager in tests of those who talk to its desk: it keeps what it is told, and runs nothing.
#[derive(Clone)]
pub(crate) struct Double {
    commands: mpsc::Sender<Command>,
    tasks: Arc<Mutex<BTreeMap<String, Kept>>>,
}

struct Kept {
    view: TaskView,
    output: Vec<OutputChunk>,
    key: Option<Box<str>>,
    notices: broadcast::Sender<TaskNotice>,
    /// Nobody here is told what becomes of it.
    elsewhere: bool,
}

/// A task that waits.
pub(crate) fn view(id: &str) -> TaskView {
    TaskView {
        id: TaskId::new(id).unwrap(),
        status: TaskStatus::Queued,
        runtime: "sh".to_owned(),
        priority: MessagePriority::Normal,
        timeout_ms: 1_000,
        retries: 0,
        args: Vec::new(),
        env: BTreeMap::new(),
        attempt: 0,
        failures: 0,
        losses: 0,
        submitted_ms: 1,
        started_ms: None,
        ended_ms: None,
        queue_position: Some(0),
        queue_age_ms: Some(0),
        estimated_wait_ms: None,
        not_before_ms: None,
        executor: None,
        cancel_asked: false,
        reason: None,
        exit_code: None,
        message: String::new(),
        stopped: Vec::new(),
        ran_ms: None,
        output_cut: false,
    }
}

// === impl Double ===

impl Double {
    /// Answers until its desks are gone.
    pub(crate) fn start() -> Self {
        let (commands, mut asked) = mpsc::channel(16);
        let double = Self { commands, tasks: Arc::default() };
        let answering = Self { commands: mpsc::channel(1).0, tasks: Arc::clone(&double.tasks) };
        tokio::spawn(async move {
            while let Some(command) = asked.recv().await {
                answering.answer(command);
            }
        });
        double
    }

    pub(crate) fn desk(&self) -> TaskDesk {
        TaskDesk::new(self.commands.clone())
    }

    /// Keeps this, and tells whoever watches.
    pub(crate) fn put(&self, view: TaskView) {
        self.put_silently(view.clone());
        let tasks = self.tasks();
        let _ = tasks[view.id.as_str()].notices.send(TaskNotice::Status(Box::new(view)));
    }

    /// Keeps this.
    pub(crate) fn put_silently(&self, view: TaskView) {
        let mut tasks = self.tasks();
        match tasks.get_mut(view.id.as_str()) {
            Some(kept) => kept.view = view,
            None => {
                let notices = broadcast::channel(NOTICES).0;
                let kept = Kept { view, output: Vec::new(), key: None, notices, elsewhere: false };
                tasks.insert(kept.view.id.to_string(), kept);
            }
        }
    }

    /// Keeps that a task wrote this, and tells whoever watches.
    pub(crate) fn write(&self, id: &str, attempt: u32, chunk: OutputChunk) {
        let mut tasks = self.tasks();
        let kept = tasks.get_mut(id).unwrap();
        kept.view.attempt = attempt;
        kept.output.push(chunk.clone());
        let _ = kept.notices.send(TaskNotice::Output { attempt, chunk });
    }

    /// From now on the task is another manager's.
    pub(crate) fn leave_to_another(&self, id: &str) {
        self.tasks().get_mut(id).unwrap().elsewhere = true;
    }

    fn tasks(&self) -> MutexGuard<'_, BTreeMap<String, Kept>> {
        self.tasks.lock().unwrap()
    }

    fn with<T>(&self, id: &TaskId, told: impl FnOnce(&mut Kept) -> T) -> Result<T, DeskError> {
        let mut tasks = self.tasks();
        tasks.get_mut(id.as_str()).map(told).ok_or_else(|| DeskError::NotFound(id.clone()))
    }

    fn answer(&self, command: Command) {
        // Whoever has left does not need to know.
        match command {
            Command::Submit(submit, reply) => drop(reply.send(self.submit(*submit))),
            Command::Get(id, reply) => drop(reply.send(self.with(&id, |kept| kept.view.clone()))),
            Command::List(query, reply) => {
                let tasks = self.tasks();
                let views = tasks.values().map(|kept| kept.view.clone());
                let asked = views.filter(|view| query.status.is_none_or(|it| it == view.status));
                let tasks = asked.take(query.limit).collect();
                drop(reply.send(Ok(TaskList { tasks, next: query.after })));
            }
            Command::Cancel(id, reply) => {
                let cancelled = self.with(&id, |kept| match kept.view.status.is_over() {
                    true => {
                        Err(DeskError::Over { id: id.clone(), status: kept.view.status.name() })
                    }
                    false => {
                        kept.view.status = TaskStatus::Cancelled;
                        Ok(kept.view.clone())
                    }
                });
                drop(reply.send(cancelled.and_then(|told| told)));
            }
            Command::Output(id, reply) => {
                drop(reply.send(self.with(&id, |kept| kept.output.clone())));
            }
            Command::Watch(id, reply) => drop(reply.send(self.with(&id, |kept| {
                Watch {
                    view: kept.view.clone(),
                    output: kept.output.clone(),
                    notices: (!kept.elsewhere && !kept.view.status.is_over())
                        .then(|| kept.notices.subscribe()),
                }
            }))),
            Command::Executors(reply) => drop(reply.send(Ok(ExecutorList::default()))),
        }
    }

    fn submit(&self, submit: super::Submit) -> Result<(TaskView, bool), DeskError> {
        if submit.spec.runtime != "sh" {
            let (given, known) = (submit.spec.runtime, vec!["sh".to_owned()]);
            return Err(DeskError::UnknownRuntime { given, known });
        }
        let same = |kept: &&Kept| submit.key.is_some() && kept.key == submit.key;
        if let Some(kept) = self.tasks().values().find(same) {
            return Ok((kept.view.clone(), false));
        }
        let count = self.tasks().len();
        let id = submit.id.map_or_else(|| format!("made-{count}"), |id| id.to_string());
        if self.tasks().contains_key(&id) {
            return Err(DeskError::OtherUnderId(TaskId::new(&id).unwrap()));
        }
        let new = TaskView {
            priority: submit.spec.priority,
            timeout_ms: submit.spec.timeout_ms,
            ..view(&id)
        };
        self.put(new.clone());
        self.with(&new.id, |kept| kept.key = submit.key)?;
        Ok((new, true))
    }
}
