use crate::tasks::execution::ExecuteBody;
use crate::tasks::manager::env_key::{EnvKey, OpenError};
use crate::tasks::manager::event::Event;
use crate::tasks::manager::link::{ExecutorResponse, Link};
use crate::tasks::manager::persistence::{Persisted, persist};
use crate::tasks::manager::settings::ManagerSettings;
use crate::tasks::manager::unix_time::{millis, now_ms};
use std::sync::Arc;
use std::time::Duration;
use tidegate::capacity::{ExecutorAnswer, Ticket};
use tidegate::task::{
    EndReason, Ending, ExecutionKey, OutputChunk, TaskEvent, TaskOutcome, TaskState,
};
use tidegate::tasks::{Durability, TaskRecord, TaskStore};
use tokio::sync::{mpsc, watch};

/// Tries of the store before an attempt that is not yet sent returns to the queue.
const TRIES_BEFORE_SENDING: u32 = 3;

/// One attempt at a task, from the selection of its executor to its end. Owns the task's state meanwhile: nothing
/// else in this manager changes it.
pub struct Attempt<S> {
    pub(super) ticket: Ticket,
    pub(super) record: TaskRecord,
    pub(super) executor: Box<str>,
    pub(super) link: Arc<Link>,
    pub(super) store: Arc<S>,
    events: mpsc::Sender<Event>,
    pub(super) cancel: watch::Receiver<bool>,
    reservation: Option<String>,
    pub(super) lease: Duration,
    pub(super) output_bytes_max: usize,
    /// Key of the environment's values.
    env_key: Option<Arc<EnvKey>>,
    /// Other managers may request a cancellation through the store.
    pub(super) shared_store: bool,
    /// Name of this manager.
    owner: Box<str>,
    /// The task belongs to nobody as soon as it waits again.
    claims: bool,
    /// Version of the state in the store.
    pub(super) persisted_version: u64,
    /// State that the store may have: it failed while this was written.
    pub(super) uncertain: Option<TaskState>,
}

/// Task, executor and channels of a new attempt.
pub struct AttemptStart {
    /// The task.
    pub ticket: Ticket,
    /// Record of the task.
    pub record: TaskRecord,
    /// Name of the executor.
    pub executor: Box<str>,
    /// Link to the executor.
    pub link: Arc<Link>,
    /// Becomes true when a client requests the cancellation.
    pub cancel: watch::Receiver<bool>,
    /// Id of the reservation, if one was made.
    pub reservation: Option<String>,
}

/// Result of sending an attempt.
enum Sent {
    /// The execution runs, or may run.
    Accepted,
    /// The task is back in the queue.
    Returned,
    /// The task was cancelled before an executor accepted it.
    Cancelled,
    /// The attempt ended before it began.
    Ended(Ending),
    /// Another manager owns the task.
    Abandoned,
}

// === impl Attempt ===

impl<S: TaskStore> Attempt<S> {
    /// A new attempt.
    pub fn new(
        start: AttemptStart,
        store: Arc<S>,
        events: mpsc::Sender<Event>,
        settings: &ManagerSettings,
    ) -> Self {
        Self {
            ticket: start.ticket,
            persisted_version: start.record.state.version,
            record: start.record,
            executor: start.executor,
            link: start.link,
            store,
            events,
            cancel: start.cancel,
            reservation: start.reservation,
            lease: settings.lease,
            output_bytes_max: settings.output_bytes_max,
            env_key: settings.env_key.clone(),
            shared_store: settings.shared_store,
            owner: settings.owner.as_str().into(),
            claims: settings.claims,
            uncertain: None,
        }
    }

    /// Name of the executor.
    pub fn executor(&self) -> &str {
        &self.executor
    }

    /// Sends the attempt, and polls it to its end.
    pub async fn run(mut self) {
        let sent = match self.dispatch().await {
            None => self.send().await,
            Some(sent) => sent,
        };
        self.follow(sent).await;
    }

    /// Sends an attempt that was persisted by the claim of its task, and polls it to its end.
    pub async fn run_claimed(mut self) {
        let sent = self.send().await;
        self.follow(sent).await;
    }

    async fn follow(mut self, sent: Sent) {
        let state = match sent {
            Sent::Accepted => self.poll_to_end().await,
            Sent::Ended(ending) => self.end(ending, Vec::new(), Duration::ZERO).await,
            Sent::Cancelled => Some(self.record.state.clone()),
            Sent::Returned => return,
            Sent::Abandoned => None,
        };
        self.report_over(state).await;
    }

    /// Polls an attempt to its end that an earlier process, or another manager, had sent.
    pub async fn resume(mut self) {
        let state = self.poll_to_end().await;
        self.report_over(state).await;
    }

    async fn report_over(&self, state: Option<TaskState>) {
        let state = state.map(Box::new);
        self.report(Event::AttemptOver { ticket: self.ticket, state }).await;
    }

    pub(super) fn key(&self) -> ExecutionKey {
        self.record.id.attempt(self.record.state.attempt)
    }

    pub(super) async fn report(&self, event: Event) {
        // Fails only while the process shuts down.
        let _ = self.events.send(event).await;
    }

    /// Applies an event to the state; false when the state does not allow it.
    pub(super) fn apply(&mut self, event: &TaskEvent) -> bool {
        match self.record.state.after(event, &self.record.spec, now_ms()) {
            Ok(mut next) => {
                // Several steps may be persisted as one.
                next.version = self.persisted_version + 1;
                if self.claims {
                    next.release();
                }
                self.record.state = next;
                true
            }
            Err(stale) => {
                tracing::warn!(task = %self.record.id, ?event, %stale, "late event ignored");
                false
            }
        }
    }

    /// Persists the state.
    pub(super) async fn persist(
        &mut self,
        output: Option<Vec<OutputChunk>>,
        durability: Durability,
        tries: Option<u32>,
    ) -> Persisted {
        loop {
            let (store, record) = (&*self.store, &self.record);
            let persisted =
                persist(store, &record.id, &record.state, output.clone(), durability, tries).await;
            match persisted {
                Persisted::Yes => {
                    self.persisted_version = self.record.state.version;
                    self.uncertain = None;
                    return Persisted::Yes;
                }
                Persisted::Failed(why) => {
                    self.uncertain = Some(self.record.state.clone());
                    return Persisted::Failed(why);
                }
                // The store has persisted it although it seemed to fail.
                Persisted::Overtaken(Some(stored)) if self.uncertain.as_ref() == Some(&*stored) => {
                    self.uncertain = None;
                    self.persisted_version = stored.version;
                    self.record.state.version = stored.version + 1;
                }
                // Another manager has left a cancellation request, and still owns nothing.
                Persisted::Overtaken(Some(stored)) if self.is_cancel_request(&stored) => {
                    self.persisted_version = stored.version;
                    self.record.state.version = stored.version + 1;
                    self.record.state.cancel_requested = true;
                    if self.record.state.assignment.is_none() && !self.record.state.status.is_over()
                    {
                        self.apply(&TaskEvent::CancelRequested);
                    }
                }
                Persisted::Overtaken(stored) => return Persisted::Overtaken(stored),
            }
        }
    }

    /// True when a stored state is this attempt's with a cancellation request of another manager.
    pub(super) fn is_cancel_request(&self, stored: &TaskState) -> bool {
        stored.cancel_requested
            && !stored.status.is_over()
            && stored.version > self.persisted_version
            && stored.owner == self.owner
            && stored.attempt <= self.record.state.attempt
    }

    /// Persists that the attempt is about to be sent, if it must be. Returns the result if it must not be sent.
    async fn dispatch(&mut self) -> Option<Sent> {
        if !self.apply(&TaskEvent::Dispatching { executor: self.executor.clone() }) {
            return Some(Sent::Abandoned);
        }
        // A local executor ends with this process, and the next process reuses no attempt number that this one may
        // have used. So the attempt need not be persisted before it is sent, unless another manager may take the
        // task over meanwhile.
        if !self.link.is_local() || self.shared_store {
            match self.persist(None, Durability::Process, Some(TRIES_BEFORE_SENDING)).await {
                Persisted::Yes => {}
                Persisted::Overtaken(_) => return Some(Sent::Abandoned),
                // Persisted or not: the next step starts from either.
                Persisted::Failed(_) => {
                    return Some(self.return_to_queue(ExecutorAnswer::Gone).await);
                }
            }
        }
        None
    }

    async fn send(&mut self) -> Sent {
        let body = match self.execute_body() {
            Ok(body) => body,
            Err(error) => return self.refuse(error.to_string()).await,
        };
        match self.link.execute(&body).await {
            ExecutorResponse::Accepted(fence) => self.accepted(fence).await,
            ExecutorResponse::Full { retry_after } => {
                self.return_to_queue(ExecutorAnswer::Full { retry_after }).await
            }
            ExecutorResponse::Unreachable => {
                self.return_to_queue(ExecutorAnswer::Unreachable).await
            }
            ExecutorResponse::Gone => self.return_to_queue(ExecutorAnswer::Gone).await,
            ExecutorResponse::Rejected(why) => self.refuse(why).await,
            // Not sent again: an executor that restarted meanwhile would start it a second time. The poll looks
            // for it, and cancels it when it is not there.
            ExecutorResponse::Unknown(why) => {
                tracing::info!(task = %self.record.id, why, "response lost; polling the attempt");
                self.report_accepted().await;
                Sent::Accepted
            }
        }
    }

    /// Ends the attempt before it began, for a reason that another attempt would meet again.
    async fn refuse(&self, why: String) -> Sent {
        self.report_accepted().await;
        Sent::Ended(Ending::new(TaskOutcome::Failed, EndReason::Refused).because(why))
    }

    /// The request for an executor, which alone is told the values of the environment.
    fn execute_body(&self) -> Result<ExecuteBody, OpenError> {
        let spec = &self.record.spec;
        let env = match &self.env_key {
            Some(key) => key.open(&self.record.id, &spec.env)?,
            None => spec.env.clone(),
        };
        Ok(ExecuteBody {
            eval_id: self.record.id.as_str().to_owned(),
            code: spec.code.clone(),
            language: Some(spec.runtime.clone()),
            reservation_id: self.reservation.clone(),
            attempt: self.record.state.attempt,
            timeout_ms: Some(spec.timeout_ms),
            lease_ms: Some(millis(self.lease)),
            args: spec.args.clone(),
            env,
        })
    }

    async fn report_accepted(&self) {
        let (ticket, answer) = (self.ticket, ExecutorAnswer::Accepted);
        self.report(Event::AttemptAnswered { ticket, answer }).await;
    }

    async fn accepted(&mut self, fence: u64) -> Sent {
        let attempt = self.record.state.attempt;
        self.report_accepted().await;
        self.apply(&TaskEvent::Accepted { attempt, fence });
        self.report_state().await;
        Sent::Accepted
    }

    /// Returns the task to the queue after a refusal, once the refusal is persisted. Not before: the next attempt
    /// would start from an outdated state.
    async fn return_to_queue(&mut self, answer: ExecutorAnswer) -> Sent {
        let attempt = self.record.state.attempt;
        self.apply(&TaskEvent::Refused { attempt });
        // With a cancellation the refusal ends the task, which must survive a power failure.
        let over = self.record.state.status.is_over();
        let durability = if over { Durability::Power } else { Durability::Process };
        if !matches!(self.persist(None, durability, None).await, Persisted::Yes) {
            return Sent::Abandoned;
        }
        if self.record.state.status.is_over() {
            return Sent::Cancelled;
        }
        let state = Box::new(self.record.state.clone());
        self.report(Event::AttemptReturned { ticket: self.ticket, answer, state }).await;
        Sent::Returned
    }

    pub(super) async fn report_state(&self) {
        let state = Box::new(self.record.state.clone());
        self.report(Event::StateChanged { ticket: self.ticket, state }).await;
    }

    /// Ends the attempt, and returns the persisted state; `None` when another manager owns the task.
    pub(super) async fn end(
        &mut self,
        ending: Ending,
        output: Vec<OutputChunk>,
        slot_time: Duration,
    ) -> Option<TaskState> {
        // The slot is free now, and need not wait for the store.
        self.report(Event::SlotFreed { ticket: self.ticket, slot_time }).await;
        let (key, attempt) = (self.key(), self.record.state.attempt);
        self.apply(&TaskEvent::Ended { attempt, ending });
        let output = Some(output).filter(|output| !output.is_empty());
        let state = self.persist_end(output).await;
        // Durable now, or another manager's: this one needs nothing more of it.
        self.link.acknowledge(&key);
        state
    }

    /// Ends the attempt as lost with its executor.
    pub(super) async fn lose(&mut self, slot_time: Duration) -> Option<TaskState> {
        self.report(Event::SlotFreed { ticket: self.ticket, slot_time }).await;
        let attempt = self.record.state.attempt;
        self.apply(&TaskEvent::Lost { attempt });
        self.persist_end(None).await
    }

    async fn persist_end(&mut self, output: Option<Vec<OutputChunk>>) -> Option<TaskState> {
        match self.persist(output, Durability::Power, None).await {
            Persisted::Yes => Some(self.record.state.clone()),
            Persisted::Overtaken(_) | Persisted::Failed(_) => None,
        }
    }
}
