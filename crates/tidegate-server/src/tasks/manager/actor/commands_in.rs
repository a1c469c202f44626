use super::actor::Actor;
use crate::tasks::manager::command::{Command, Reply};
use crate::tasks::manager::env_key::EnvKeyError;
use crate::tasks::manager::error::TaskError;
use crate::tasks::manager::unix_time::{millis, now_ms};
use crate::tasks::manager::view::{ExecutorList, ProgressSeriesView, Submit, TaskView, TaskWatch};
use ring::digest;
use std::sync::Arc;
use tidegate::capacity::Ticket;
use tidegate::ledger::Ledger;
use tidegate::task::{OutputChunk, SpecError, TaskEvent, TaskId, TaskSpec, TaskState, TaskStatus};
use tidegate::tasks::{NewTask, TaskRecord, TaskStore};
use tokio::sync::oneshot;

// === impl Actor ===

impl<S: TaskStore, L: Ledger> Actor<S, L> {
    /// Handles a command of a handle.
    pub(super) fn take_command(&mut self, command: Command) {
        match command {
            Command::Submit(submit, reply) => self.submit(*submit, reply),
            Command::Get(id, reply) => self.get(id, reply),
            Command::List(query, reply) => self.store.list(query, reply),
            Command::Cancel(id, reply) => self.cancel(id, reply),
            Command::Output(id, reply) => self.output(id, reply),
            Command::Progress(id, since_ms, reply) => self.progress(id, since_ms, reply),
            Command::Watch(id, reply) => self.watch(id, reply),
            Command::Executors(reply) => self.list_executors(reply),
        }
    }

    fn submit(&mut self, mut submit: Submit, reply: Reply<(TaskView, bool)>) {
        submit.spec.runtime = match self.check(&submit.spec) {
            Ok(runtime) => runtime,
            Err(error) => {
                let _ = reply.send(Err(error));
                return;
            }
        };
        let id = submit.id.unwrap_or_else(|| self.new_id());
        let (fingerprint, spec) = match self.sealed(&id, submit.spec) {
            Ok(sealed) => sealed,
            Err(error) => {
                let _ = reply.send(Err(TaskError::Store(error.to_string())));
                return;
            }
        };
        // Whoever claims it owns it.
        let owner = if self.shared.is_some() { "" } else { &self.settings.owner };
        let mut state = TaskState::submitted(owner, now_ms());
        state.client = submit.client;
        let record = TaskRecord { id, spec: Arc::new(spec), state };
        let bytes = self.tasks.begin_submission(&record);
        self.store.submit(NewTask { record, key: submit.key, fingerprint }, bytes, reply);
    }

    /// Fingerprint of a task, and the task with the values of its environment sealed.
    fn sealed(&self, id: &TaskId, mut spec: TaskSpec) -> Result<([u8; 16], TaskSpec), EnvKeyError> {
        let json = serde_json::to_vec(&spec).unwrap_or_default();
        match &self.settings.env_key {
            Some(key) if !spec.env.is_empty() => {
                key.seal(id, &mut spec.env)?;
                Ok((key.fingerprint(&json), spec))
            }
            _ => Ok((fingerprint(&json), spec)),
        }
    }

    /// Checks a submission; returns the runtime that it names.
    fn check(&self, spec: &TaskSpec) -> Result<String, TaskError> {
        if self.draining {
            return Err(TaskError::Draining);
        }
        spec.check(&self.settings.limits)?;
        if spec.runtime.is_empty() {
            return Err(SpecError::Runtime { given: String::new() }.into());
        }
        let unknown = |known| TaskError::UnknownRuntime { given: spec.runtime.clone(), known };
        let runtime = self.executors.find_runtime(&spec.runtime).map_err(unknown)?;
        let elsewhere = self.shared.as_ref().map_or(0, |shared| shared.live());
        let tasks = self.tasks.total().max(usize::try_from(elsewhere).unwrap_or(usize::MAX));
        let bytes = self.tasks.total_bytes() + spec.bytes();
        if tasks >= self.settings.tasks_max || bytes > self.settings.memory_bytes {
            let retry_after = self.queue.retry_after();
            return Err(TaskError::QueueFull { waiting: tasks as u64, retry_after });
        }
        Ok(runtime)
    }

    /// A new id: sorts by time, and can't be guessed.
    fn new_id(&self) -> TaskId {
        let text = format!("t{:011x}{:016x}", now_ms(), self.rng.next_u64());
        TaskId::new(&text).unwrap_or_else(|_| self.new_id())
    }

    fn get(&self, id: TaskId, reply: Reply<TaskView>) {
        match self.tasks.find(&id) {
            Some(entry) => drop(reply.send(Ok(self.view(entry.record())))),
            None => self.store.get(id, reply),
        }
    }

    /// The view of a task with its queue position.
    pub(super) fn view(&self, record: &TaskRecord) -> TaskView {
        let mut view = TaskView::of(record);
        if record.state.status == TaskStatus::Queued
            && let Some(ticket) = self.tasks.ticket(&record.id)
            && let Some((position, wait)) = self.queue.position(ticket)
        {
            view.queue_position = Some(position);
            view.estimated_wait_ms = wait.map(millis);
        }
        view.progress = self.tasks.find(&record.id).and_then(|entry| entry.progress().newest());
        view
    }

    fn cancel(&mut self, id: TaskId, reply: Reply<TaskView>) {
        // The task is over or another manager's.
        let Some(ticket) = self.tasks.ticket(&id) else {
            return self.store.request_cancel(id, reply);
        };
        let Some(entry) = self.tasks.get_mut(ticket) else { return };
        if !entry.request_cancel() {
            return self.cancel_waiting(ticket, reply);
        }
        let view = self.tasks.record(ticket).map(|record| self.view(record));
        self.notify_status(ticket);
        let _ = reply.send(view.ok_or(TaskError::NotFound(id)));
    }

    /// Cancels a task whose cancellation was requested while an attempt was on its way, and was not accepted.
    pub(super) fn cancel_if_requested(&mut self, ticket: Ticket) {
        if self.tasks.get(ticket).is_some_and(|entry| entry.must_cancel()) {
            let (reply, _unused) = oneshot::channel();
            self.cancel_waiting(ticket, reply);
        }
    }

    /// Cancels a task that no executor has: it is over as soon as that is persisted.
    fn cancel_waiting(&mut self, ticket: Ticket, reply: Reply<TaskView>) {
        let withdrawn = self.queue.withdraw(ticket);
        self.obey_all(withdrawn);
        let Some(entry) = self.tasks.get_mut(ticket) else { return };
        entry.begin_cancelling();
        let record = entry.record().clone();
        self.queue.remove_delayed(ticket, record.state.not_before_ms);
        match record.state.after(&TaskEvent::CancelRequested, &record.spec, now_ms()) {
            Ok(state) => {
                self.store.persist_cancelled(ticket, TaskRecord { state, ..record }, reply);
            }
            Err(stale) => {
                let status = stale.status.name();
                let _ = reply.send(Err(TaskError::Over { id: record.id, status }));
            }
        }
    }

    fn output(&self, id: TaskId, reply: Reply<Vec<OutputChunk>>) {
        match self.tasks.find(&id) {
            Some(entry) => drop(reply.send(Ok(entry.output().to_vec()))),
            None => self.store.output(id, reply),
        }
    }

    fn progress(&self, id: TaskId, since_ms: u64, reply: Reply<ProgressSeriesView>) {
        match self.tasks.find(&id) {
            Some(entry) => drop(reply.send(Ok(entry.progress().series(since_ms)))),
            None => self.store.no_progress(id, reply),
        }
    }

    fn watch(&mut self, id: TaskId, reply: Reply<TaskWatch>) {
        let ticket = self.tasks.ticket(&id);
        let Some(entry) = ticket.and_then(|ticket| self.tasks.get_mut(ticket)) else {
            return self.store.watch(id, reply);
        };
        let notices = entry.subscribe();
        let (output, record) = (entry.output().to_vec(), entry.record().clone());
        let _ = reply.send(Ok(TaskWatch::new(self.view(&record), output, Some(notices))));
    }

    fn list_executors(&self, reply: Reply<ExecutorList>) {
        let views = self.executors.views(|id| self.queue.own_executions(id));
        self.store.counts(views, reply);
    }
}

/// Digest of a task's JSON. Stored with the task, so every version of this program must compute the same.
fn fingerprint(json: &[u8]) -> [u8; 16] {
    let digest = digest::digest(&digest::SHA256, json);
    let mut short = [0; 16];
    short.copy_from_slice(&digest.as_ref()[..16]);
    short
}
