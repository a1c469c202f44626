use super::command::Command;
use super::error::TaskError;
use super::handle::ManagerHandle;
use super::view::{
    ExecutorList, ProgressSeriesView, Submit, TaskList, TaskNotice, TaskView, TaskWatch,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use tidegate::MessagePriority;
use tidegate::task::{OutputChunk, TaskId, TaskStatus};
use tokio::sync::{broadcast, mpsc};

/// Few, so that a watcher that does not read is soon behind.
const NOTICES: usize = 8;

/// Fake manager behind a real handle, for tests: it stores tasks, and runs nothing.
#[derive(Clone)]
pub(crate) struct FakeManager {
    commands: mpsc::Sender<Command>,
    tasks: Arc<Mutex<BTreeMap<String, FakeTask>>>,
}

struct FakeTask {
    view: TaskView,
    output: Vec<OutputChunk>,
    key: Option<Box<str>>,
    notices: broadcast::Sender<TaskNotice>,
    /// Another manager owns it: its watchers get no notices.
    elsewhere: bool,
}

/// A queued task.
pub(crate) fn view(id: &str) -> TaskView {
    TaskView {
        id: TaskId::new(id).unwrap(),
        status: TaskStatus::Queued,
        runtime: "sh".to_owned(),
        priority: MessagePriority::Normal,
        client: None,
        timeout_ms: 1_000,
        retries: 0,
        args: Vec::new(),
        env: Vec::new(),
        attempt: 0,
        skipped: 0,
        failures: 0,
        losses: 0,
        submitted_ms: 1,
        started_ms: None,
        ended_ms: None,
        queue_position: Some(0),
        queue_position_at_least: false,
        queue_age_ms: Some(0),
        estimated_wait_ms: None,
        not_before_ms: None,
        executor: None,
        cancel_requested: false,
        reason: None,
        exit_code: None,
        message: String::new(),
        stopped: Vec::new(),
        ran_ms: None,
        output_cut: false,
        progress: None,
    }
}

// === impl FakeManager ===

impl FakeManager {
    /// Starts a fake that answers until its handles are gone.
    pub(crate) fn start() -> Self {
        let (commands, mut commands_in) = mpsc::channel(16);
        let fake = Self { commands, tasks: Arc::default() };
        let answering = Self { commands: mpsc::channel(1).0, tasks: Arc::clone(&fake.tasks) };
        tokio::spawn(async move {
            while let Some(command) = commands_in.recv().await {
                answering.answer(command);
            }
        });
        fake
    }

    pub(crate) fn handle(&self) -> ManagerHandle {
        ManagerHandle::new(self.commands.clone())
    }

    /// Stores a task, and notifies its watchers.
    pub(crate) fn put(&self, view: TaskView) {
        self.put_silently(view.clone());
        let tasks = self.tasks();
        let _ = tasks[view.id.as_str()].notices.send(TaskNotice::Status(Box::new(view)));
    }

    /// Stores a task without a notice.
    pub(crate) fn put_silently(&self, view: TaskView) {
        let mut tasks = self.tasks();
        match tasks.get_mut(view.id.as_str()) {
            Some(task) => task.view = view,
            None => {
                let notices = broadcast::channel(NOTICES).0;
                let task =
                    FakeTask { view, output: Vec::new(), key: None, notices, elsewhere: false };
                tasks.insert(task.view.id.to_string(), task);
            }
        }
    }

    /// Appends output to a task, and notifies its watchers.
    pub(crate) fn write(&self, id: &str, attempt: u32, chunk: OutputChunk) {
        let mut tasks = self.tasks();
        let task = tasks.get_mut(id).unwrap();
        task.view.attempt = attempt;
        task.output.push(chunk.clone());
        let _ = task.notices.send(TaskNotice::Output { attempt, chunk });
    }

    /// Gives the task to another manager.
    pub(crate) fn leave_to_another(&self, id: &str) {
        self.tasks().get_mut(id).unwrap().elsewhere = true;
    }

    fn tasks(&self) -> MutexGuard<'_, BTreeMap<String, FakeTask>> {
        self.tasks.lock().unwrap()
    }

    fn with<T>(&self, id: &TaskId, read: impl FnOnce(&mut FakeTask) -> T) -> Result<T, TaskError> {
        let mut tasks = self.tasks();
        tasks.get_mut(id.as_str()).map(read).ok_or_else(|| TaskError::NotFound(id.clone()))
    }

    fn answer(&self, command: Command) {
        match command {
            Command::Submit(submit, reply) => drop(reply.send(self.submit(*submit))),
            Command::Get(id, reply) => drop(reply.send(self.with(&id, |task| task.view.clone()))),
            Command::List(query, reply) => {
                let tasks = self.tasks();
                let views = tasks.values().map(|task| task.view.clone());
                let wanted = views
                    .filter(|view| query.status.is_none_or(|status| status == view.status))
                    .filter(|view| {
                        let owner = query.client.as_deref();
                        owner.is_none_or(|owner| view.client.as_deref() == Some(owner))
                    });
                let tasks = wanted.take(query.limit).collect();
                drop(reply.send(Ok(TaskList { tasks, next: query.after })));
            }
            Command::Cancel(id, reply) => {
                let cancelled = self.with(&id, |task| match task.view.status.is_over() {
                    true => {
                        Err(TaskError::Over { id: id.clone(), status: task.view.status.name() })
                    }
                    false => {
                        task.view.status = TaskStatus::Cancelled;
                        Ok(task.view.clone())
                    }
                });
                drop(reply.send(cancelled.and_then(|result| result)));
            }
            Command::Progress(_, _, reply) => drop(reply.send(Ok(ProgressSeriesView::default()))),
            Command::Output(id, reply) => {
                drop(reply.send(self.with(&id, |task| task.output.clone())));
            }
            Command::Watch(id, reply) => drop(reply.send(self.with(&id, |task| {
                let live = !task.elsewhere && !task.view.status.is_over();
                let notices = live.then(|| task.notices.subscribe());
                TaskWatch::new(task.view.clone(), task.output.clone(), notices)
            }))),
            Command::Executors(reply) => drop(reply.send(Ok(ExecutorList::default()))),
        }
    }

    fn submit(&self, submit: Submit) -> Result<(TaskView, bool), TaskError> {
        if submit.spec.runtime != "sh" {
            let (given, known) = (submit.spec.runtime, vec!["sh".to_owned()]);
            return Err(TaskError::UnknownRuntime { given, known });
        }
        let same = |task: &&FakeTask| submit.key.is_some() && task.key == submit.key;
        if let Some(task) = self.tasks().values().find(same) {
            return Ok((task.view.clone(), false));
        }
        let count = self.tasks().len();
        let id = submit.id.map_or_else(|| format!("new-{count}"), |id| id.to_string());
        if self.tasks().contains_key(&id) {
            return Err(TaskError::IdInUse(TaskId::new(&id).unwrap()));
        }
        let new = TaskView {
            priority: submit.spec.priority,
            timeout_ms: submit.spec.timeout_ms,
            client: submit.client.as_deref().map(str::to_owned),
            ..view(&id)
        };
        self.put(new.clone());
        self.with(&new.id, |task| task.key = submit.key)?;
        Ok((new, true))
    }
}
