use super::unbroken_beats::UnbrokenBeats;
use crate::tasks::manager::command::Reply;
use crate::tasks::manager::error::TaskError;
use crate::tasks::manager::event::Event;
use crate::tasks::manager::persistence::{Persisted, persist};
use crate::tasks::manager::unix_time::now_ms;
use crate::tasks::manager::view::{
    ExecutorList, ExecutorView, ProgressSeriesView, TaskList, TaskView, TaskWatch,
};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidegate::capacity::Ticket;
use tidegate::store::StoreError;
use tidegate::task::{OutputChunk, TaskEvent, TaskId, TaskStatus};
use tidegate::tasks::{Durability, NewTask, TaskQuery, TaskRecord, TaskStore};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

/// First pause before a task that slipped away is read again; doubles while the store is unavailable.
const READ_AGAIN_FIRST: Duration = Duration::from_millis(500);
const READ_AGAIN_MAX: Duration = Duration::from_secs(30);
/// Tasks adopted at once.
const ADOPT_PAGE: usize = 500;
/// Ended tasks deleted at once.
const PURGE_PAGE: usize = 1_000;
/// Tasks ahead of a queued one that are counted.
const AHEAD_MAX: u64 = 1_000;
/// Tries to leave a cancellation request in the store while the task's owner changes it.
const CANCEL_TRIES: u32 = 8;

/// Background calls to the task store.
pub struct StoreCalls<S> {
    store: Arc<S>,
    events: mpsc::Sender<Event>,
    /// Waiting tasks belong to nobody.
    claims: bool,
    beats: Arc<Mutex<UnbrokenBeats>>,
}

// === impl StoreCalls ===

impl<S: TaskStore> StoreCalls<S> {
    /// Calls that report to `events`.
    pub fn new(store: Arc<S>, events: mpsc::Sender<Event>, claims: bool) -> Self {
        Self { store, events, claims, beats: Arc::default() }
    }

    /// The store.
    pub fn store(&self) -> &Arc<S> {
        &self.store
    }

    pub(super) fn events(&self) -> &mpsc::Sender<Event> {
        &self.events
    }

    /// Persists a submission. `bytes` is the memory accounted for it.
    pub fn submit(&self, task: NewTask, bytes: usize, reply: Reply<(TaskView, bool)>) {
        let (store, events) = (Arc::clone(&self.store), self.events.clone());
        tokio::spawn(async move {
            let record = Box::new(task.record.clone());
            let submission = Box::new(store.submit(task).await);
            let _ = events.send(Event::Submitted { record, bytes, submission, reply }).await;
        });
    }

    /// Responds with a task.
    pub fn get(&self, id: TaskId, reply: Reply<TaskView>) {
        let store = Arc::clone(&self.store);
        tokio::spawn(async move {
            let view = async { Ok(queued_view(&*store, &find(&*store, &id).await?).await) };
            let _ = reply.send(view.await);
        });
    }

    /// Reads a page of tasks.
    pub fn list(&self, query: TaskQuery, reply: Reply<TaskList>) {
        let (store, events) = (Arc::clone(&self.store), self.events.clone());
        tokio::spawn(async move {
            let page = store.list(&query).await;
            let _ = events.send(Event::Listed { page, status: query.status, reply }).await;
        });
    }

    /// Responds with a task's output.
    pub fn output(&self, id: TaskId, reply: Reply<Vec<OutputChunk>>) {
        let store = Arc::clone(&self.store);
        tokio::spawn(async move {
            let _ = reply.send(output(&*store, &id).await);
        });
    }

    /// Responds with no progress for a task that is over or another manager's, which must exist.
    pub fn no_progress(&self, id: TaskId, reply: Reply<ProgressSeriesView>) {
        let store = Arc::clone(&self.store);
        tokio::spawn(async move {
            let found = find(&*store, &id).await;
            let _ = reply.send(found.map(|_| ProgressSeriesView::default()));
        });
    }

    /// Responds with a subscription that has no further changes: the task is over, or another manager's.
    pub fn watch(&self, id: TaskId, reply: Reply<TaskWatch>) {
        let store = Arc::clone(&self.store);
        tokio::spawn(async move {
            let watch = async {
                let record = find(&*store, &id).await?;
                let output = output(&*store, &id).await?;
                Ok(TaskWatch::new(queued_view(&*store, &record).await, output, None))
            };
            let _ = reply.send(watch.await);
        });
    }

    /// Responds with these executors and the number of tasks.
    pub fn counts(&self, executors: Vec<ExecutorView>, reply: Reply<ExecutorList>) {
        let store = Arc::clone(&self.store);
        tokio::spawn(async move {
            let counts = store.counts().await;
            let list = counts.map(|counts| ExecutorList {
                executors,
                tasks: TaskStatus::ALL.into_iter().zip(counts).collect(),
            });
            let _ = reply.send(list.map_err(unavailable));
        });
    }

    /// Persists the cancellation of a task that no executor has, and reports its end.
    pub fn persist_cancelled(&self, ticket: Ticket, record: TaskRecord, reply: Reply<TaskView>) {
        let (store, events) = (Arc::clone(&self.store), self.events.clone());
        tokio::spawn(async move {
            let (id, state) = (&record.id, &record.state);
            let persisted = persist(&*store, id, state, None, Durability::Power, None).await;
            let persisted = matches!(persisted, Persisted::Yes);
            let response = match persisted {
                true => Ok(TaskView::of(&record)),
                false => find(&*store, id).await.map(|record| TaskView::of(&record)),
            };
            let _ = reply.send(response);
            let state = persisted.then(|| Box::new(record.state));
            let _ = events.send(Event::AttemptOver { ticket, state }).await;
        });
    }

    /// Leaves a cancellation request in the store for the manager that owns the task.
    pub fn request_cancel(&self, id: TaskId, reply: Reply<TaskView>) {
        let store = Arc::clone(&self.store);
        tokio::spawn(async move {
            let _ = reply.send(request_cancel(&*store, &id).await);
        });
    }

    /// Renews this manager's heartbeat.
    pub fn beat(&self, owner: String, lease: Duration) {
        let (store, beats) = (Arc::clone(&self.store), Arc::clone(&self.beats));
        tokio::spawn(async move { beat(&*store, &beats, &owner, lease).await });
    }

    /// Renews this manager's heartbeat, and adopts at most `room` tasks of an earlier process or, while the
    /// heartbeats of others can be believed, of managers that are gone.
    pub fn adopt(&self, owner: String, lease: Duration, room: usize) {
        let (store, events) = (Arc::clone(&self.store), self.events.clone());
        let beats = Arc::clone(&self.beats);
        tokio::spawn(async move {
            let Some(others) = beat(&*store, &beats, &owner, lease).await else { return };
            let mut left = room;
            while left > 0 {
                let page = match store.adopt(&owner, ADOPT_PAGE.min(left), others).await {
                    Ok(page) => page,
                    Err(error) => return tracing::warn!(%error, "task store: can't adopt tasks"),
                };
                if page.is_empty() {
                    return;
                }
                tracing::info!(tasks = page.len(), "tasks adopted");
                left = left.saturating_sub(page.len());
                if events.send(Event::Adopted(page)).await.is_err() {
                    return;
                }
            }
        });
    }

    /// Ends an attempt as lost when its lease is over.
    pub fn lose_after(&self, lease: Duration, ticket: Ticket, record: TaskRecord) {
        let (store, events, claims) = (Arc::clone(&self.store), self.events.clone(), self.claims);
        tokio::spawn(async move {
            sleep(lease).await;
            let event = TaskEvent::Lost { attempt: record.state.attempt };
            let Ok(mut state) = record.state.after(&event, &record.spec, now_ms()) else { return };
            if claims {
                state.release();
            }
            let persisted =
                persist(&*store, &record.id, &state, None, Durability::Power, None).await;
            let state = matches!(persisted, Persisted::Yes).then(|| Box::new(state));
            let _ = events.send(Event::AttemptOver { ticket, state }).await;
        });
    }

    /// Reads a task again that somebody else has changed, and adopts it if `owner` still owns it.
    pub fn read_again(&self, id: TaskId, owner: String) {
        let (store, events, claims) = (Arc::clone(&self.store), self.events.clone(), self.claims);
        tokio::spawn(async move {
            let mut pause = READ_AGAIN_FIRST;
            while !events.is_closed() {
                // Not at once: the other side may be about to change it again.
                sleep(pause).await;
                pause = (pause * 2).min(READ_AGAIN_MAX);
                match store.get(&id).await {
                    Ok(Some(record)) => {
                        let state = &record.state;
                        // It may be claimed again, and the answer on its way here.
                        let on_its_way = claims && state.status == TaskStatus::Queued;
                        if *state.owner == *owner && !state.status.is_over() && !on_its_way {
                            let _ = events.send(Event::Adopted(vec![record])).await;
                        }
                        return;
                    }
                    Ok(None) => return,
                    Err(error) => {
                        tracing::warn!(task = %id, %error, "task store: can't read a task again");
                    }
                }
            }
        });
    }

    /// Deletes tasks that ended before a time.
    pub fn purge(&self, ended_before_ms: u64) {
        let store = Arc::clone(&self.store);
        tokio::spawn(async move {
            loop {
                match store.forget(ended_before_ms, PURGE_PAGE).await {
                    Ok(count) if count >= PURGE_PAGE as u64 => {}
                    Ok(_) => return,
                    Err(error) => return tracing::warn!(%error, "task store: can't delete tasks"),
                }
            }
        });
    }
}

/// Renews a manager's heartbeat. Returns whether those of others can be believed; `None` without an answer.
async fn beat<S: TaskStore>(
    store: &S,
    beats: &Mutex<UnbrokenBeats>,
    owner: &str,
    lease: Duration,
) -> Option<bool> {
    let written = store.beat(owner, lease).await;
    // No holder panics.
    let mut beats = beats.lock().unwrap_or_else(PoisonError::into_inner);
    match written {
        Ok(()) => Some(beats.written(Instant::now(), lease)),
        Err(error) => {
            beats.failed();
            tracing::warn!(%error, "task store: can't write the heartbeat");
            None
        }
    }
}

async fn request_cancel<S: TaskStore>(store: &S, id: &TaskId) -> Result<TaskView, TaskError> {
    let mut view = None;
    for _ in 0..CANCEL_TRIES {
        let mut record = find(store, id).await?;
        let cancelled = record.state.after(&TaskEvent::CancelRequested, &record.spec, now_ms());
        record.state = cancelled
            .map_err(|stale| TaskError::Over { id: id.clone(), status: stale.status.name() })?;
        let durability = Durability::Power;
        match persist(store, id, &record.state, None, durability, Some(3)).await {
            Persisted::Yes => return Ok(TaskView::of(&record)),
            Persisted::Failed(why) => return Err(TaskError::Store(why)),
            // The owner was faster.
            Persisted::Overtaken(_) => view = Some(TaskView::of(&record)),
        }
    }
    view.ok_or_else(|| TaskError::NotFound(id.clone()))
}

async fn find<S: TaskStore>(store: &S, id: &TaskId) -> Result<TaskRecord, TaskError> {
    let found = store.get(id).await.map_err(unavailable)?;
    found.ok_or_else(|| TaskError::NotFound(id.clone()))
}

/// The view of a task with its position in a queue that belongs to nobody.
async fn queued_view<S: TaskStore>(store: &S, record: &TaskRecord) -> TaskView {
    let mut view = TaskView::of(record);
    if record.state.is_waiting() {
        // One more tells whether there are more. Without an answer the view is worth sending all the same.
        let ahead = store.queue_position(&record.id, AHEAD_MAX + 1).await.ok().flatten();
        view.queue_position = ahead.map(|ahead| ahead.min(AHEAD_MAX));
        view.queue_position_at_least = ahead.is_some_and(|ahead| ahead > AHEAD_MAX);
    }
    view
}

async fn output<S: TaskStore>(store: &S, id: &TaskId) -> Result<Vec<OutputChunk>, TaskError> {
    match store.output(id).await.map_err(unavailable)? {
        Some(output) => Ok(output),
        None => find(store, id).await.map(|_| Vec::new()),
    }
}

fn unavailable(error: StoreError) -> TaskError {
    TaskError::Store(error.to_string())
}
