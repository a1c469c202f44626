use super::event::Event;
use super::keeping::{Step, keep};
use super::link::{Link, Offered};
use crate::worker::ExecuteBody;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tidegate::capacity::{Answer, Ticket};
use tidegate::task::{EndReason, Ending, ExecutionKey, Outcome, OutputChunk, TaskEvent, TaskState};
use tidegate::tasks::{Durability, TaskRecord, TaskStore};
use tokio::sync::{mpsc, watch};

/// How often the store is tried before an attempt that was not sent goes back to the line.
const TRIES_BEFORE_SENDING: u32 = 3;

/// One attempt at a task, from the moment it has a place to go to until it is over. Owns the task meanwhile:
/// nobody else of this manager changes its state.
pub(super) struct Attempt<S> {
    pub ticket: Ticket,
    pub record: TaskRecord,
    pub executor: Box<str>,
    pub link: Arc<Link>,
    pub store: Arc<S>,
    pub events: mpsc::Sender<Event>,
    /// Becomes true when somebody wants the task to stop.
    pub cancel: watch::Receiver<bool>,
    pub lease: Duration,
    pub output_bytes_max: usize,
    /// Whether other managers may leave a wish in the store.
    pub shared_store: bool,
    pub reservation: Option<String>,
    /// The version of the state that is kept.
    pub kept: u64,
    /// What may be kept: the store failed while it was to be.
    pub unsure: Option<TaskState>,
}

/// How far an attempt came.
enum Sent {
    /// It runs, or may.
    Taken,
    /// It went back to the line.
    Back,
    /// It was cancelled before it was taken.
    Over,
    /// It ended before it began.
    Ended(Ending),
    /// It is another's.
    Abandoned,
}

// === impl Attempt ===

impl<S: TaskStore> Attempt<S> {
    /// Sends it, and follows it to its end.
    pub async fn drive(mut self) {
        let state = match self.send().await {
            Sent::Taken => self.follow_to_the_end().await,
            Sent::Ended(ending) => self.end(ending, Vec::new(), Duration::ZERO).await,
            Sent::Over => Some(self.record.state.clone()),
            // It waits again, and is not this driver's any more.
            Sent::Back => return,
            Sent::Abandoned => None,
        };
        self.tell(Event::Over { ticket: self.ticket, state: state.map(Box::new) }).await;
    }

    /// Takes up again what another life of this manager, or another manager, had sent.
    pub async fn resume(mut self) {
        let state = self.follow_to_the_end().await;
        self.tell(Event::Over { ticket: self.ticket, state: state.map(Box::new) }).await;
    }

    pub(super) fn key(&self) -> ExecutionKey {
        self.record.id.attempt(self.record.state.attempt)
    }

    pub(super) async fn tell(&self, event: Event) {
        // The manager's thread is gone only when the process is about to be.
        let _ = self.events.send(event).await;
    }

    /// What comes of the event; false when the task is not in a state for it.
    pub(super) fn step(&mut self, event: &TaskEvent) -> bool {
        match self.record.state.after(event, &self.record.spec, now_ms()) {
            Ok(mut next) => {
                // Several steps may be kept as one.
                next.version = self.kept + 1;
                self.record.state = next;
                true
            }
            Err(stale) => {
                tracing::warn!(task = %self.record.id, ?event, %stale, "an event came too late");
                false
            }
        }
    }

    /// Keeps where the task stands. False when it is another's now.
    pub(super) async fn keep(
        &mut self,
        output: Option<Vec<OutputChunk>>,
        durability: Durability,
        tries: Option<u32>,
    ) -> Step {
        loop {
            let (store, record) = (&*self.store, &self.record);
            let step =
                keep(store, &record.id, &record.state, output.clone(), durability, tries).await;
            match step {
                Step::Kept => {
                    self.kept = self.record.state.version;
                    self.unsure = None;
                    return Step::Kept;
                }
                Step::Failed(why) => {
                    self.unsure = Some(self.record.state.clone());
                    return Step::Failed(why);
                }
                // It was kept when the store seemed to fail.
                Step::Overtaken(Some(there)) if self.unsure.as_ref() == Some(&there) => {
                    self.unsure = None;
                    self.kept = there.version;
                    self.record.state.version = there.version + 1;
                }
                // Somebody who does not own it wants it to stop; that is not another's step but a wish.
                Step::Overtaken(Some(there)) if self.is_wish(&there) => {
                    self.kept = there.version;
                    self.record.state.version = there.version + 1;
                    self.record.state.cancel_asked = true;
                    if self.record.state.placed.is_none() && !self.record.state.status.is_over() {
                        self.step(&TaskEvent::CancelAsked);
                    }
                }
                Step::Overtaken(there) => return Step::Overtaken(there),
            }
        }
    }

    pub(super) fn is_wish(&self, there: &TaskState) -> bool {
        there.cancel_asked
            && !there.status.is_over()
            && there.version > self.kept
            && there.owner == self.record.state.owner
            && there.attempt <= self.record.state.attempt
    }

    async fn send(&mut self) -> Sent {
        if !self.step(&TaskEvent::Placing { executor: self.executor.clone() }) {
            return Sent::Abandoned;
        }
        // What ends with this process is not looked for by the next, which gives no number of an attempt again
        // that this one may have used. So it need not be kept where it is sent, unless another manager may take
        // the task over meanwhile.
        if !self.link.ends_with_us() || self.shared_store {
            match self.keep(None, Durability::Process, Some(TRIES_BEFORE_SENDING)).await {
                Step::Kept => {}
                Step::Overtaken(_) => return Sent::Abandoned,
                // It may be kept or not; the next step starts from either.
                Step::Failed(_) => return self.go_back(Answer::Gone).await,
            }
        }
        let spec = &self.record.spec;
        let body = ExecuteBody {
            eval_id: self.record.id.as_str().to_owned(),
            code: spec.code.clone(),
            language: Some(spec.runtime.clone()),
            reservation_id: self.reservation.clone(),
            attempt: self.record.state.attempt,
            timeout_ms: Some(spec.timeout_ms),
            lease_ms: Some(millis(self.lease)),
            args: spec.args.clone(),
            env: spec.env.clone(),
        };
        match self.link.execute(&body).await {
            Offered::Taken(fence) => self.taken(fence).await,
            Offered::Full { retry_after } => self.go_back(Answer::Full { retry_after }).await,
            Offered::Unreachable => self.go_back(Answer::Unreachable).await,
            Offered::Gone => self.go_back(Answer::Gone).await,
            Offered::Never(why) => {
                self.tell(Event::Answered { ticket: self.ticket, answer: Answer::Accepted }).await;
                Sent::Ended(Ending::new(Outcome::Failed, EndReason::Refused).because(why))
            }
            // Not sent again: an executor that was started anew meanwhile would start it a second time. It is
            // looked for, and if it is not there it is kept from being started.
            Offered::Unknown(why) => {
                tracing::info!(task = %self.record.id, why, "an answer was lost; looking for the attempt");
                self.tell(Event::Answered { ticket: self.ticket, answer: Answer::Accepted }).await;
                Sent::Taken
            }
        }
    }

    async fn taken(&mut self, fence: u64) -> Sent {
        let attempt = self.record.state.attempt;
        self.tell(Event::Answered { ticket: self.ticket, answer: Answer::Accepted }).await;
        self.step(&TaskEvent::Accepted { attempt, fence });
        self.tell_state().await;
        Sent::Taken
    }

    /// The executor did not take it: the next attempt may be anywhere, once this one is kept as refused. Not
    /// before: it would start from a state that is not the newest.
    async fn go_back(&mut self, answer: Answer) -> Sent {
        let attempt = self.record.state.attempt;
        self.step(&TaskEvent::Refused { attempt });
        // A task that was cancelled meanwhile is over with this, which must last.
        let over = self.record.state.status.is_over();
        let durability = if over { Durability::Power } else { Durability::Process };
        if !matches!(self.keep(None, durability, None).await, Step::Kept) {
            return Sent::Abandoned;
        }
        if self.record.state.status.is_over() {
            return Sent::Over;
        }
        let state = Box::new(self.record.state.clone());
        self.tell(Event::Returned { ticket: self.ticket, answer, state }).await;
        Sent::Back
    }

    pub(super) async fn tell_state(&self) {
        let state = Box::new(self.record.state.clone());
        self.tell(Event::Stands { ticket: self.ticket, state }).await;
    }

    pub(super) async fn end(
        &mut self,
        ending: Ending,
        output: Vec<OutputChunk>,
        held: Duration,
    ) -> Option<TaskState> {
        // The slot is free now, and need not wait for the store.
        self.tell(Event::Freed { ticket: self.ticket, held }).await;
        let attempt = self.record.state.attempt;
        self.step(&TaskEvent::Ended { attempt, ending });
        let output = Some(output).filter(|output| !output.is_empty());
        self.keep_end(output).await
    }

    pub(super) async fn lose(&mut self, held: Duration) -> Option<TaskState> {
        self.tell(Event::Freed { ticket: self.ticket, held }).await;
        let attempt = self.record.state.attempt;
        self.step(&TaskEvent::Lost { attempt });
        self.keep_end(None).await
    }

    async fn keep_end(&mut self, output: Option<Vec<OutputChunk>>) -> Option<TaskState> {
        match self.keep(output, Durability::Power, None).await {
            Step::Kept => Some(self.record.state.clone()),
            Step::Overtaken(_) | Step::Failed(_) => None,
        }
    }
}

/// Unix time.
pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    millis(since)
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
