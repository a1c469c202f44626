use super::mirror::{Mirror, News};
use crate::tasks::execution::{CapacityReport, ExecutionView};
use crate::tasks::session::{
    Answer, AnswerResult, BufferMetrics, ExecutionUpdate, FrameWriter, Interest, Join, WorkerState,
    WorkerStats,
};
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidegate::task::ExecutionKey;
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::{Instant, sleep_until};

/// Ends that wait to be acknowledged; further ones are acknowledged when the worker sends them again.
const ENDED_MAX: usize = 4_096;

/// A worker as its manager knows it, across the sessions of its process.
pub struct WorkerSession {
    name: Box<str>,
    inner: Mutex<Inner>,
    /// Writer of the control connection, with the number of its session.
    pub(super) control: tokio::sync::Mutex<Option<(u64, FrameWriter)>>,
    /// Ends have become durable.
    pub(super) ended: Notify,
    /// Number of the session that lasts.
    lasts: watch::Sender<Option<u64>>,
    /// Nothing is dispatched to it, as an operator has set.
    drained: AtomicBool,
}

#[derive(Default)]
struct Inner {
    live: Option<Live>,
    capacity: Option<CapacityReport>,
    mirrors: BTreeMap<ExecutionKey, Mirror>,
    /// Requests that wait for an answer, by execution.
    dispatched: HashMap<String, oneshot::Sender<AnswerResult>>,
    cancelled: HashMap<String, oneshot::Sender<AnswerResult>>,
    ended: Vec<String>,
    stats: Option<WorkerStats>,
    debug: Option<BufferMetrics>,
}

/// A session that lasts.
#[derive(Clone, Debug)]
pub(super) struct Live {
    pub(super) id: u64,
    pub(super) incarnation: u64,
    pub(super) peer: SocketAddr,
    pub(super) software: String,
    pub(super) since: Instant,
    /// Last message on the control connection.
    pub(super) contact: Instant,
    pub(super) has_data: bool,
}

/// State of a worker, for views and metrics.
pub(super) struct Snapshot {
    pub(super) live: Option<Live>,
    pub(super) capacity: Option<CapacityReport>,
    pub(super) stats: Option<WorkerStats>,
    pub(super) debug: Option<BufferMetrics>,
    pub(super) followed: usize,
}

/// Kind of a request that waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tasks::manager) enum Asked {
    /// Execution or reservation.
    Dispatch,
    /// Cancellation.
    Cancel,
}

/// Result of waiting for news of an execution.
pub(in crate::tasks::manager) enum Waited {
    /// State and new output; without news after the whole wait, while the worker is there.
    View(Box<ExecutionView>),
    /// The worker does not know the execution.
    Unknown,
    /// No contact with the worker.
    NoContact,
}

// === impl WorkerSession ===

impl WorkerSession {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            inner: Mutex::default(),
            control: tokio::sync::Mutex::default(),
            ended: Notify::new(),
            lasts: watch::Sender::new(None),
            drained: AtomicBool::new(false),
        }
    }

    /// Stops or resumes the dispatch: the capacity is from now on that of a worker that drains, or its own again.
    pub(super) fn set_drained(&self, drained: bool) {
        self.drained.store(drained, Ordering::Relaxed);
    }

    /// A capacity of the worker, with the operator's drain.
    fn with_drain(&self, report: CapacityReport) -> CapacityReport {
        let draining = report.draining || self.drained.load(Ordering::Relaxed);
        CapacityReport { draining, ..report }
    }

    /// Name of the worker.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // No holder panics; if one did, each part would still be consistent.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // --- the connections ---

    /// Begins a session, unless another process of this name is there. Returns the interests in its executions.
    pub(super) fn begin(
        &self,
        id: u64,
        join: Join,
        peer: SocketAddr,
        silence_max: Duration,
    ) -> Result<(), Live> {
        let mut inner = self.lock();
        let now = Instant::now();
        let other = inner.live.as_ref().filter(|live| {
            live.incarnation != join.incarnation && now - live.contact < silence_max
        });
        if let Some(other) = other {
            return Err(other.clone());
        }
        inner.drop_requests();
        inner.live = Some(Live {
            id,
            incarnation: join.incarnation,
            peer,
            software: join.software.chars().take(64).collect(),
            since: now,
            contact: now,
            has_data: false,
        });
        inner.capacity = join.capacity;
        inner.mirrors.values_mut().for_each(Mirror::begin_session);
        self.lasts.send_replace(Some(id));
        Ok(())
    }

    /// Joins the data connection to its session. False when that is over, or has one.
    pub(super) fn begin_data(&self, id: u64) -> bool {
        let mut inner = self.lock();
        match inner.live.as_mut().filter(|live| live.id == id && !live.has_data) {
            Some(live) => {
                live.has_data = true;
                true
            }
            None => false,
        }
    }

    /// Ends a session, if it is still this one. True if it was.
    pub(super) fn end(&self, id: u64) -> bool {
        let mut inner = self.lock();
        if inner.live.as_ref().is_none_or(|live| live.id != id) {
            return false;
        }
        inner.live = None;
        inner.stats = None;
        inner.drop_requests();
        inner.mirrors.values().for_each(|mirror| mirror.changed.notify_one());
        self.lasts.send_replace(None);
        true
    }

    /// Waits until this session is over: ended, broken off, or replaced by another.
    pub(super) async fn over(&self, id: u64) {
        // Fails never: the sender is in here.
        let _ = self.lasts.subscribe().wait_for(|lasts| *lasts != Some(id)).await;
    }

    /// Breaks a session off whose control connection has failed.
    pub(super) fn break_off(&self, id: u64) {
        self.lasts.send_if_modified(|lasts| lasts.take_if(|lasts| *lasts == id).is_some());
    }

    /// True while this session lasts.
    pub(super) fn is_live(&self, id: u64) -> bool {
        self.lock().live.as_ref().is_some_and(|live| live.id == id)
    }

    /// True if nothing needs this worker: it is gone, and no attempt follows an execution of it.
    pub(super) fn is_idle(&self) -> bool {
        let inner = self.lock();
        inner.live.is_none() && inner.mirrors.is_empty()
    }

    /// Takes in a state of the worker. Returns its capacity if that is told.
    pub(super) fn take_state(&self, id: u64, state: WorkerState) -> Option<CapacityReport> {
        let mut inner = self.lock();
        let live = inner.live.as_mut().filter(|live| live.id == id)?;
        live.contact = Instant::now();
        for Answer { id, result } in state.answers {
            inner.answer(id, result);
        }
        if state.capacity.is_some() {
            inner.capacity.clone_from(&state.capacity);
        }
        state.capacity.map(|report| self.with_drain(report))
    }

    /// Takes in an update of an execution. An end that nobody waits for is acknowledged, so that the worker
    /// forgets it. False when output is missing before it.
    pub(super) fn take_update(&self, update: ExecutionUpdate) -> bool {
        let mut inner = self.lock();
        let Ok(key) = update.view.id.parse::<ExecutionKey>() else { return true };
        match inner.mirrors.get_mut(&key) {
            Some(mirror) => mirror.update(update),
            None => {
                if update.view.ending().is_some() {
                    inner.note_ended(key.to_string());
                }
                true
            }
        }
    }

    /// Executions whose end has become durable since the last call.
    pub(super) fn take_ended(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().ended)
    }

    pub(super) fn set_stats(&self, stats: WorkerStats) {
        self.lock().stats = Some(stats);
    }

    pub(super) fn set_debug(&self, debug: BufferMetrics) {
        self.lock().debug = Some(debug);
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let inner = self.lock();
        Snapshot {
            live: inner.live.clone(),
            capacity: inner.capacity.clone().map(|report| self.with_drain(report)),
            stats: inner.stats.clone(),
            debug: inner.debug.clone(),
            followed: inner.mirrors.len(),
        }
    }

    // --- the attempts ---

    /// Capacity of the worker, while it is connected.
    pub(in crate::tasks::manager) fn capacity(&self) -> Option<CapacityReport> {
        let inner = self.lock();
        inner.live.as_ref().and(inner.capacity.clone()).map(|report| self.with_drain(report))
    }

    /// Interests in all executions that attempts follow.
    pub(super) fn interests(&self) -> Vec<Interest> {
        let inner = self.lock();
        let wanted = inner.mirrors.iter().filter(|(_, mirror)| mirror.is_of_interest());
        wanted.map(|(key, mirror)| mirror.interest(key)).collect()
    }

    /// Follows an execution of which the attempt has output up to `after`. Returns the interest for the worker if
    /// it was not followed before.
    pub(in crate::tasks::manager) fn follow(
        &self,
        key: &ExecutionKey,
        fence: Option<u64>,
        after: u64,
    ) -> Option<Interest> {
        let mut inner = self.lock();
        if inner.mirrors.contains_key(key) {
            return None;
        }
        let mirror = Mirror::new(fence, after);
        let interest = mirror.interest(key);
        inner.mirrors.insert(key.clone(), mirror);
        Some(interest)
    }

    /// Follows an execution that is about to be dispatched.
    pub(in crate::tasks::manager) fn begin_dispatch(&self, key: &ExecutionKey) {
        self.lock().mirrors.entry(key.clone()).or_insert_with(Mirror::dispatching);
    }

    /// Ends the dispatch of an execution, with its fence if the worker has accepted it.
    pub(in crate::tasks::manager) fn end_dispatch(&self, key: &ExecutionKey, fence: Option<u64>) {
        if let Some(mirror) = self.lock().mirrors.get_mut(key) {
            mirror.dispatched(fence);
        }
    }

    /// Stops following an execution.
    pub(in crate::tasks::manager) fn unfollow(&self, key: &ExecutionKey) {
        self.lock().mirrors.remove(key);
    }

    /// Acknowledges the end of an execution, which is durable now.
    pub(in crate::tasks::manager) fn acknowledge(&self, key: &ExecutionKey) {
        self.lock().note_ended(key.to_string());
        self.ended.notify_one();
    }

    /// Registers a request whose answer arrives later. Dropped without an answer when the session ends.
    pub(in crate::tasks::manager) fn ask(
        &self,
        asked: Asked,
        id: &str,
    ) -> oneshot::Receiver<AnswerResult> {
        let (sender, receiver) = oneshot::channel();
        let mut inner = self.lock();
        let waiting = match asked {
            Asked::Dispatch => &mut inner.dispatched,
            Asked::Cancel => &mut inner.cancelled,
        };
        waiting.retain(|_, sender| !sender.is_closed());
        waiting.insert(id.to_owned(), sender);
        receiver
    }

    /// Waits for news of an execution beyond the output up to `after`.
    pub(in crate::tasks::manager) async fn wait_for(
        &self,
        key: &ExecutionKey,
        wait: Duration,
        after: u64,
    ) -> Waited {
        let (began, until) = (Instant::now(), Instant::now() + wait);
        loop {
            let changed = {
                let mut inner = self.lock();
                let Some(mirror) = inner.mirrors.get_mut(key) else { return Waited::Unknown };
                match mirror.take(after) {
                    News::View(view) => return Waited::View(view),
                    News::Unknown => return Waited::Unknown,
                    News::Nothing => Arc::clone(&mirror.changed),
                }
            };
            tokio::select! {
                () = changed.notified() => {}
                () = sleep_until(until) => return self.after_wait(key, began, after),
            }
        }
    }

    /// State without news: of worth only if the worker was in contact meanwhile.
    fn after_wait(&self, key: &ExecutionKey, began: Instant, after: u64) -> Waited {
        let mut inner = self.lock();
        let in_contact = inner.live.as_ref().is_some_and(|live| live.contact >= began);
        let view = inner.mirrors.get_mut(key).and_then(|mirror| mirror.view(after));
        match view {
            Some(view) if in_contact => Waited::View(Box::new(view)),
            _ => Waited::NoContact,
        }
    }
}

// === impl Inner ===

impl Inner {
    fn drop_requests(&mut self) {
        self.dispatched.clear();
        self.cancelled.clear();
    }

    fn answer(&mut self, id: String, result: AnswerResult) {
        let waiting = match result {
            AnswerResult::Cancelled => self.cancelled.remove(&id),
            AnswerResult::Unknown => {
                let key = id.parse::<ExecutionKey>().ok();
                if let Some(mirror) = key.and_then(|key| self.mirrors.get_mut(&key)) {
                    mirror.set_unknown();
                }
                None
            }
            _ => self.dispatched.remove(&id),
        };
        if let Some(waiting) = waiting {
            // Fails when the attempt was dropped meanwhile.
            let _ = waiting.send(result);
        }
    }

    fn note_ended(&mut self, id: String) {
        if self.ended.len() < ENDED_MAX {
            self.ended.push(id);
        }
    }
}
