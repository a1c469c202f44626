use super::attempt::Attempt;
use super::output_buffer::OutputBuffer;
use crate::tasks::execution::{ExecutionQuery, ExecutionState, ExecutionView};
use crate::tasks::manager::event::Event;
use crate::tasks::manager::link::{Link, PollResponse};
use crate::tasks::manager::persistence::Persisted;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tidegate::task::{ExecutionKey, TaskEvent, TaskState, TaskStatus};
use tidegate::tasks::{Durability, TaskStore};
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// Interval between two tries to reach an executor.
const RETRY_EVERY: Duration = Duration::from_millis(250);
/// Delay before the running state is persisted. A task that ends within it is written once: its intermediate
/// states are not worth a write.
const PERSIST_DELAY: Duration = Duration::from_millis(10);
/// Longest wait of one poll; below the lease, which the poll renews.
const POLL_MAX: Duration = Duration::from_secs(10);
/// First pause between two polls of an executor that responds at once without news; doubles up to the second.
const PAUSE_FIRST: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Longest wait for the store while an execution must be polled.
const STORE_WAIT_MAX: Duration = Duration::from_secs(1);
/// Time beyond the lease until an attempt counts as lost: the executor's clock starts when it receives a poll, the
/// manager's when the response arrives, and the executor needs time to stop the execution.
const LEASE_MARGIN: Duration = Duration::from_secs(2);

/// Progress of polling one attempt.
struct Polling {
    key: ExecutionKey,
    fence: Option<u64>,
    link: Arc<Link>,
    _followed: Followed,
    /// Wait of one poll.
    wait: Duration,
    started: Instant,
    /// Last time that the executor knew the execution.
    last_seen: Instant,
    /// Offset of the output received so far.
    after: u64,
    /// Version of the progress received so far.
    progress: u64,
    output: OutputBuffer,
    /// Time at which the running state is persisted.
    persist_at: Instant,
    /// The executor has received the cancellation.
    cancel_sent: bool,
    /// Last time that the store was read for a cancellation request.
    store_read: Instant,
    pause: Duration,
}

/// Stops following the execution when its attempt is over, or dropped.
struct Followed {
    link: Arc<Link>,
    key: ExecutionKey,
}

/// Result of waiting for a poll.
enum Next {
    /// The executor has responded.
    Response(PollResponse),
    /// A client has requested the cancellation.
    CancelRequested,
    /// Another manager owns the task, or this one shuts down.
    Abandoned,
}

// === impl Attempt ===

impl<S: TaskStore> Attempt<S> {
    /// Polls the execution to its end. `None` when another manager owns the task.
    pub(super) async fn poll_to_end(&mut self) -> Option<TaskState> {
        let mut polling = Polling::new(self);
        loop {
            self.forward_cancel(&mut polling).await;
            let polled_at = Instant::now();
            let response = match self.next(&mut polling).await {
                Next::Response(response) => response,
                Next::CancelRequested => continue,
                Next::Abandoned => return None,
            };
            let expired = polling.last_seen.elapsed() >= self.lease + LEASE_MARGIN;
            match response {
                PollResponse::View(view) => {
                    let news = self.take_view(&view, &mut polling).await;
                    if let Some(mut ending) = view.ending() {
                        ending.output_cut |= polling.output.is_cut();
                        let slot_time = polling.started.elapsed();
                        return self.end(ending, polling.output.into_chunks(), slot_time).await;
                    }
                    self.read_cancel_request(&mut polling.store_read).await;
                    polling.pace(news, polled_at).await;
                    continue;
                }
                // The executor has restarted and lost the execution. An execute request that is still on its way
                // must not start it after all.
                PollResponse::NotFound => {
                    if self.link.cancel(&polling.key).await || expired {
                        return self.lose(polling.started.elapsed()).await;
                    }
                }
                PollResponse::NoResponse(why) if expired => {
                    tracing::warn!(task = %self.record.id, executor = %self.executor, why,
                        "no response of the executor for longer than the lease; attempt lost");
                    return self.lose(polling.started.elapsed()).await;
                }
                PollResponse::NoResponse(_) => {}
            }
            sleep(RETRY_EVERY).await;
        }
    }

    /// Forwards a cancellation request to the executor.
    async fn forward_cancel(&mut self, polling: &mut Polling) {
        let requested = *self.cancel.borrow_and_update() || self.record.state.cancel_requested;
        if requested && !polling.cancel_sent {
            if !self.record.state.cancel_requested {
                self.apply(&TaskEvent::CancelRequested);
            }
            polling.cancel_sent = self.link.cancel(&polling.key).await;
        }
    }

    /// Waits for the response to one poll. Meanwhile persists the running state, if it is not.
    async fn next(&mut self, polling: &mut Polling) -> Next {
        let Polling { fence, wait, after, progress, .. } = *polling;
        let query = ExecutionQuery { wait, after, progress: Some(progress), fence };
        let (link, key) = (Arc::clone(&polling.link), polling.key.clone());
        let mut poll = pin!(link.poll(&key, &query));
        let mut persist_at = polling.persist_at;
        let next = loop {
            let unpersisted = self.record.state.version != self.persisted_version;
            tokio::select! {
                response = &mut poll => break Next::Response(response),
                changed = self.cancel.changed(), if !polling.cancel_sent => match changed {
                    Ok(()) => break Next::CancelRequested,
                    // The manager shuts down.
                    Err(_) => break Next::Abandoned,
                },
                () = sleep_until(persist_at), if unpersisted => {
                    persist_at = Instant::now() + STORE_WAIT_MAX;
                    if !self.persist_running().await {
                        break Next::Abandoned;
                    }
                }
            }
        };
        polling.persist_at = persist_at;
        next
    }

    /// Takes in a response of the executor; true when it has news.
    async fn take_view(&mut self, view: &ExecutionView, polling: &mut Polling) -> bool {
        polling.last_seen = Instant::now();
        let new_output = view.next != polling.after;
        polling.after = view.next;
        let chunks = polling.output.append(&view.output);
        let over = view.ending().is_some();
        let news = (!over && self.take_state(view).await) || new_output;
        if !chunks.is_empty() {
            let (ticket, attempt) = (self.ticket, polling.key.attempt);
            self.report(Event::OutputWritten { ticket, attempt, chunks }).await;
        }
        news | self.take_progress(view, polling).await
    }

    /// Takes in progress; true when there is some.
    async fn take_progress(&self, view: &ExecutionView, polling: &mut Polling) -> bool {
        let Some(progress) = view.progress.as_ref() else { return false };
        if view.progress_version <= polling.progress {
            return false;
        }
        polling.progress = view.progress_version;
        let (key, progress) = (polling.key.clone(), Box::new(progress.clone()));
        self.report(Event::Progressed { key, progress }).await;
        true
    }

    /// Reads the store for a cancellation request to another manager: every third of a lease, and for a bounded
    /// time, because the lease is not renewed meanwhile.
    async fn read_cancel_request(&mut self, last_read: &mut Instant) {
        let due = last_read.elapsed() >= self.lease / 3;
        if !(self.shared_store && due) || self.record.state.cancel_requested {
            return;
        }
        *last_read = Instant::now();
        let found = timeout(STORE_WAIT_MAX, self.store.get(&self.record.id)).await;
        if let Ok(Ok(Some(stored))) = found
            && self.is_cancel_request(&stored.state)
        {
            self.persisted_version = stored.state.version;
            self.record.state = stored.state;
            self.report_state().await;
        }
    }

    /// Takes in the state of a running execution; true when it has changed.
    async fn take_state(&mut self, view: &ExecutionView) -> bool {
        let (attempt, before) = (self.record.state.attempt, self.record.state.status);
        if before == TaskStatus::Queued {
            self.apply(&TaskEvent::Accepted { attempt, fence: view.fence });
        }
        let provisioning = self.record.state.status == TaskStatus::Provisioning;
        if provisioning && view.state == ExecutionState::Running {
            self.apply(&TaskEvent::Running { attempt });
        }
        let changed = self.record.state.status != before;
        if changed {
            self.report_state().await;
        }
        changed
    }

    /// Persists the running state. False when another manager owns the task. A store that does not respond must
    /// not stop the polling; then a later step persists the state.
    async fn persist_running(&mut self) -> bool {
        let state = self.record.state.clone();
        match timeout(STORE_WAIT_MAX, self.persist(None, Durability::Process, Some(1))).await {
            Ok(Persisted::Overtaken(_)) => false,
            Ok(Persisted::Yes | Persisted::Failed(_)) => true,
            Err(_) => {
                self.uncertain = Some(state);
                true
            }
        }
    }
}

// === impl Followed ===

impl Drop for Followed {
    fn drop(&mut self) {
        self.link.unfollow(&self.key);
    }
}

// === impl Polling ===

impl Polling {
    fn new<S: TaskStore>(attempt: &Attempt<S>) -> Self {
        let now = Instant::now();
        let followed = Followed { link: Arc::clone(&attempt.link), key: attempt.key() };
        Self {
            key: attempt.key(),
            fence: attempt.record.state.assignment.as_ref().and_then(|assignment| assignment.fence),
            link: Arc::clone(&attempt.link),
            _followed: followed,
            // One long poll is two messages; short ones would cost more than the task is worth.
            wait: POLL_MAX.min(attempt.lease / 3),
            started: now,
            last_seen: now,
            after: 0,
            progress: 0,
            output: OutputBuffer::new(attempt.output_bytes_max),
            persist_at: now + PERSIST_DELAY,
            cancel_sent: false,
            store_read: now,
            pause: PAUSE_FIRST,
        }
    }

    /// Pauses before the next poll of an executor that does not wait although asked to.
    async fn pace(&mut self, news: bool, polled_at: Instant) {
        if news || polled_at.elapsed() >= self.wait / 2 {
            self.pause = PAUSE_FIRST;
            return;
        }
        sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
    }
}
