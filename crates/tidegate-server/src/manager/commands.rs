use super::actor::Actor;
use super::attempt::now_ms;
use super::book::bytes_of;
use super::command::{Command, Reply};
use super::event::Event;
use super::keeping::{Step, keep};
use super::view::{Submit, TaskView};
use super::{DeskError, Watch};
use ring::digest;
use std::sync::Arc;
use std::time::Duration;
use tidegate::capacity::Ticket;
use tidegate::ledger::Ledger;
use tidegate::task::{OutputChunk, SpecError, TaskEvent, TaskId, TaskSpec, TaskState};
use tidegate::tasks::{Durability, NewTask, TaskRecord, TaskStore};
use tokio::sync::{oneshot, watch};

/// When to come back where nobody can know how fast tasks end.
const RETRY_AFTER_UNKNOWN: Duration = Duration::from_secs(5);
/// The longest advice.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

// === impl Actor ===

impl<S: TaskStore, L: Ledger> Actor<S, L> {
    pub fn take_command(&mut self, command: Command) {
        match command {
            Command::Submit(submit, reply) => self.submit(*submit, reply),
            Command::Get(id, reply) => self.get(id, reply),
            Command::List(query, reply) => self.list(query, reply),
            Command::Cancel(id, reply) => self.cancel(id, reply),
            Command::Output(id, reply) => self.output(id, reply),
            Command::Watch(id, reply) => self.watch(id, reply),
            Command::Executors(reply) => self.tell_executors(reply),
        }
    }

    fn submit(&mut self, submit: Submit, reply: Reply<(TaskView, bool)>) {
        if let Err(error) = self.check(&submit.spec) {
            let _ = reply.send(Err(error));
            return;
        }
        let id = submit.id.unwrap_or_else(|| self.new_id());
        let fingerprint = fingerprint(&submit.spec);
        let state = TaskState::submitted(&self.terms.owner, now_ms());
        let record = TaskRecord { id, spec: Arc::new(submit.spec), state };
        let bytes = bytes_of(&record);
        self.arriving.0 += 1;
        self.arriving.1 += bytes;
        let (store, events) = (Arc::clone(&self.store), self.events.clone());
        tokio::spawn(async move {
            let task = NewTask { record: record.clone(), key: submit.key, fingerprint };
            let (submission, record) = (Box::new(store.submit(task).await), Box::new(record));
            let _ = events.send(Event::Submitted { record, bytes, submission, reply }).await;
        });
    }

    fn check(&self, spec: &TaskSpec) -> Result<(), DeskError> {
        if self.draining {
            return Err(DeskError::Draining);
        }
        spec.check(&self.terms.limits)?;
        if spec.runtime.is_empty() {
            return Err(SpecError::Runtime { given: String::new() }.into());
        }
        let reports = || self.executors.iter().filter_map(|it| it.report.as_ref());
        let anything = reports().any(|report| report.runtimes.is_empty());
        let named = reports().any(|report| report.runtimes.contains(&spec.runtime));
        // Before anybody has said what it runs, nobody can say that it is not run.
        if !anything && !named && reports().next().is_some() {
            let mut known: Vec<_> = reports().flat_map(|report| report.runtimes.clone()).collect();
            known.sort();
            known.dedup();
            return Err(DeskError::UnknownRuntime { given: spec.runtime.clone(), known });
        }
        let tasks = self.book.len() + self.arriving.0;
        let bytes = self.book.bytes() + self.arriving.1 + spec.bytes();
        if tasks >= self.terms.tasks_max || bytes > self.terms.memory_bytes {
            return Err(DeskError::LineFull {
                waiting: tasks as u64,
                retry_after: self.retry_after(),
            });
        }
        Ok(())
    }

    /// When one of those that wait now will have ended.
    fn retry_after(&self) -> Duration {
        let wait = self.estimate.wait(0, self.dispatcher.fleet().slots(), 0);
        wait.unwrap_or(RETRY_AFTER_UNKNOWN).clamp(Duration::from_millis(50), RETRY_AFTER_MAX)
    }

    /// Sorts by time, and can't be guessed.
    fn new_id(&self) -> TaskId {
        let text = format!("t{:011x}{:016x}", now_ms(), self.chance.next());
        TaskId::new(&text).unwrap_or_else(|_| self.new_id())
    }

    fn get(&mut self, id: TaskId, reply: Reply<TaskView>) {
        if let Some(entry) = self.book.ticket(&id).and_then(|ticket| self.book.get(ticket)) {
            let _ = reply.send(Ok(self.view(&entry.record)));
            return;
        }
        let store = Arc::clone(&self.store);
        tokio::spawn(async move {
            let _ = reply.send(find(&*store, id).await.map(|record| TaskView::of(&record)));
        });
    }

    fn cancel(&mut self, id: TaskId, reply: Reply<TaskView>) {
        let Some(ticket) = self.book.ticket(&id) else { return self.cancel_elsewhere(id, reply) };
        let Some(entry) = self.book.get_mut(ticket) else { return };
        if let Some(driven) = &entry.driven {
            driven.send_replace(true);
            entry.cancel_asked = true;
            entry.record.state.cancel_asked = true;
            let view = self.book.get(ticket).map(|entry| self.view(&entry.record));
            self.tell_status(ticket);
            let _ = reply.send(view.ok_or(DeskError::NotFound(id)));
            return;
        }
        let record = entry.record.clone();
        self.cancel_waiting(ticket, &record, reply);
    }

    /// Who was asked to stop while it was on its way to an executor that did not take it stops here.
    pub fn obey_wish(&mut self, ticket: Ticket) {
        let Some(entry) = self.book.get(ticket) else { return };
        let state = &entry.record.state;
        let nobodys = entry.driven.is_none() && state.placed.is_none() && !state.status.is_over();
        if (entry.cancel_asked || state.cancel_asked) && nobodys {
            let (reply, _nobody) = oneshot::channel();
            let record = entry.record.clone();
            self.cancel_waiting(ticket, &record, reply);
        }
    }

    /// Nobody runs it: it is over as soon as that is kept.
    fn cancel_waiting(&mut self, ticket: Ticket, record: &TaskRecord, reply: Reply<TaskView>) {
        if let Some(order) = self.dispatcher.withdraw(ticket) {
            self.obey(order);
        }
        if let Some(at_ms) = record.state.not_before_ms {
            self.later.remove(&(at_ms, ticket));
        }
        if let Some(entry) = self.book.get_mut(ticket) {
            // Nobody else may take a step until this one is kept.
            entry.driven = Some(watch::channel(true).0);
        }
        let state = match record.state.after(&TaskEvent::CancelAsked, &record.spec, now_ms()) {
            Ok(state) => state,
            Err(stale) => {
                let status = stale.status.name();
                let _ = reply.send(Err(DeskError::Over { id: record.id.clone(), status }));
                return;
            }
        };
        let record = TaskRecord { state, ..record.clone() };
        let (store, events) = (Arc::clone(&self.store), self.events.clone());
        tokio::spawn(async move {
            let (id, state) = (&record.id, &record.state);
            let step = keep(&*store, id, state, None, Durability::Power, None).await;
            let kept = matches!(step, Step::Kept);
            let answer = match kept {
                true => Ok(TaskView::of(&record)),
                false => find(&*store, record.id.clone()).await.map(|record| TaskView::of(&record)),
            };
            let _ = reply.send(answer);
            let state = kept.then(|| Box::new(record.state));
            let _ = events.send(Event::Over { ticket, state }).await;
        });
    }

    /// It is over, or another manager's: the wish is left in the store, where its manager finds it.
    fn cancel_elsewhere(&self, id: TaskId, reply: Reply<TaskView>) {
        let store = Arc::clone(&self.store);
        tokio::spawn(async move {
            let mut answer = Err(DeskError::NotFound(id.clone()));
            // Its manager may be faster a few times, but hardly always.
            for _ in 0..8 {
                let mut record = match find(&*store, id.clone()).await {
                    Ok(record) => record,
                    Err(error) => {
                        answer = Err(error);
                        break;
                    }
                };
                match record.state.after(&TaskEvent::CancelAsked, &record.spec, now_ms()) {
                    Err(stale) => {
                        answer =
                            Err(DeskError::Over { id: id.clone(), status: stale.status.name() });
                        break;
                    }
                    Ok(state) => record.state = state,
                }
                answer = Ok(TaskView::of(&record));
                let step =
                    keep(&*store, &id, &record.state, None, Durability::Power, Some(3)).await;
                match step {
                    Step::Kept => break,
                    Step::Failed(why) => {
                        answer = Err(DeskError::Store(why));
                        break;
                    }
                    Step::Overtaken(_) => {}
                }
            }
            let _ = reply.send(answer);
        });
    }

    fn output(&mut self, id: TaskId, reply: Reply<Vec<OutputChunk>>) {
        if let Some(entry) = self.book.ticket(&id).and_then(|ticket| self.book.get(ticket)) {
            let _ = reply.send(Ok(entry.output.clone()));
            return;
        }
        let store = Arc::clone(&self.store);
        tokio::spawn(async move {
            let _ = reply.send(written(&*store, &id).await);
        });
    }

    fn watch(&mut self, id: TaskId, reply: Reply<Watch>) {
        if let Some(ticket) = self.book.ticket(&id)
            && let Some(entry) = self.book.get_mut(ticket)
        {
            let notices = Some(entry.subscribe());
            let (output, record) = (entry.output.clone(), entry.record.clone());
            let _ = reply.send(Ok(Watch { view: self.view(&record), output, notices }));
            return;
        }
        let store = Arc::clone(&self.store);
        tokio::spawn(async move {
            let watch = async {
                let record = find(&*store, id.clone()).await?;
                let output = written(&*store, &id).await?;
                Ok(Watch { view: TaskView::of(&record), output, notices: None })
            };
            let _ = reply.send(watch.await);
        });
    }
}

async fn find<S: TaskStore>(store: &S, id: TaskId) -> Result<TaskRecord, DeskError> {
    let found = store.get(&id).await.map_err(|error| DeskError::Store(error.to_string()))?;
    found.ok_or(DeskError::NotFound(id))
}

async fn written<S: TaskStore>(store: &S, id: &TaskId) -> Result<Vec<OutputChunk>, DeskError> {
    let trouble = |error: tidegate::store::StoreError| DeskError::Store(error.to_string());
    match store.output(id).await.map_err(trouble)? {
        Some(output) => Ok(output),
        None => find(store, id.clone()).await.map(|_| Vec::new()),
    }
}

/// Kept with a task, so that it must be the same in every version of this program: a digest of its JSON.
fn fingerprint(spec: &TaskSpec) -> [u8; 16] {
    let json = serde_json::to_vec(spec).unwrap_or_default();
    let digest = digest::digest(&digest::SHA256, &json);
    let mut short = [0; 16];
    short.copy_from_slice(&digest.as_ref()[..16]);
    short
}
