use super::event::Event;
use super::keeping::{Step, keep};
use super::link::{Link, Offered, Told};
use crate::worker::{ExecuteBody, ExecutionState, ExecutionView};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tidegate::capacity::{Answer, Ticket};
use tidegate::task::{
    EndReason, Ending, ExecutionKey, Outcome, OutputChunk, TaskEvent, TaskState, TaskStatus,
};
use tidegate::tasks::{Durability, TaskRecord, TaskStore};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// Between two tries to reach an executor.
const RETRY_EVERY: Duration = Duration::from_millis(250);
/// A task that ends within this is kept once instead of several times: that it was provisioning is not worth a write.
const SHORT: Duration = Duration::from_millis(10);
/// How long an answer is waited for; below the lease, which it renews.
const POLL_MAX: Duration = Duration::from_secs(10);
/// How often the store is tried before an attempt that was not sent goes back to the line.
const TRIES_BEFORE_SENDING: u32 = 3;
/// Between two questions to an executor that answers at once and has nothing to say; it doubles.
const PACE_FIRST: Duration = Duration::from_millis(20);
const PACE_MAX: Duration = Duration::from_secs(1);
/// How long the store is waited for while an execution has to be followed.
const LOOK_MAX: Duration = Duration::from_secs(1);
/// Beyond the lease until an attempt counts as lost: the executor's clock starts when it hears of us, ours when it
/// answers, and then it has to stop the execution.
const LEASE_MARGIN: Duration = Duration::from_secs(2);

/// One attempt at a task, from the moment it has a place to go to until it is over. Owns the task meanwhile: nobody else
/// of this manager changes its state.
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

    fn key(&self) -> ExecutionKey {
        self.record.id.attempt(self.record.state.attempt)
    }

    async fn tell(&self, event: Event) {
        // The manager's thread is gone only when the process is about to be.
        let _ = self.events.send(event).await;
    }

    /// What comes of the event; false when the task is not in a state for it.
    fn step(&mut self, event: &TaskEvent) -> bool {
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
    async fn keep(
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

    fn is_wish(&self, there: &TaskState) -> bool {
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
        // What ends with this process is not looked for by the next, which gives no number of an attempt again that this one
        // may have used. So it need not be kept where it is sent, unless another manager may take the task over meanwhile.
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
            // Not sent again: an executor that was started anew meanwhile would start it a second time. It is looked for,
            // and if it is not there it is kept from being started.
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

    /// The executor did not take it: the next attempt may be anywhere, once this one is kept as refused. Not before: it
    /// would start from a state that is not the newest.
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

    async fn tell_state(&self) {
        let state = Box::new(self.record.state.clone());
        self.tell(Event::Stands { ticket: self.ticket, state }).await;
    }

    /// `None` when the task is another's now.
    async fn follow_to_the_end(&mut self) -> Option<TaskState> {
        let started = Instant::now();
        let mut heard = Instant::now();
        let (mut after, mut output) = (0, Output::new(self.output_bytes_max));
        // One long question is two messages; whoever asks again and again says more than the task is worth.
        let wait = POLL_MAX.min(self.lease / 3);
        let mut keep_at = started + SHORT;
        let link = Arc::clone(&self.link);
        let (mut told_to_stop, mut looked, mut pace) = (false, Instant::now(), PACE_FIRST);
        let fence = self.record.state.placed.as_ref().and_then(|placed| placed.fence);
        let key = self.key();
        loop {
            let asked = *self.cancel.borrow_and_update() || self.record.state.cancel_asked;
            if asked && !told_to_stop {
                if !self.record.state.cancel_asked {
                    self.step(&TaskEvent::CancelAsked);
                }
                told_to_stop = self.link.cancel(&key).await;
            }
            let asked_at = Instant::now();
            let mut follow = pin!(link.follow(&key, fence, wait, after));
            let told = loop {
                let unkept = self.record.state.version != self.kept;
                tokio::select! {
                    told = &mut follow => break Some(told),
                    changed = self.cancel.changed(), if !told_to_stop => match changed {
                        Ok(()) => break None,
                        // The manager is about to end.
                        Err(_) => return None,
                    },
                    () = sleep_until(keep_at), if unkept => {
                        keep_at = Instant::now() + LOOK_MAX;
                        if !self.keep_under_way().await {
                            return None;
                        }
                    }
                }
            };
            let Some(told) = told else { continue };
            match told {
                Told::View(view) => {
                    heard = Instant::now();
                    let news = view.next != after || self.saw(&view).await;
                    after = view.next;
                    let chunks = output.take(&view);
                    if !chunks.is_empty() {
                        let attempt = key.attempt;
                        self.tell(Event::Wrote { ticket: self.ticket, attempt, chunks }).await;
                    }
                    if let Some(mut ending) = view.ending() {
                        ending.output_cut |= output.cut;
                        return self.end(ending, output.chunks, started.elapsed()).await;
                    }
                    self.saw(&view).await;
                    self.look_for_wish(&mut looked).await;
                    // One that does not wait although it was asked to is not asked without a pause.
                    pace = match news || asked_at.elapsed() >= wait / 2 {
                        true => PACE_FIRST,
                        false => {
                            sleep(pace).await;
                            (pace * 2).min(PACE_MAX)
                        }
                    };
                }
                // Started anew, it has forgotten everything, and what it ran is gone. A request of ours that is still on
                // its way must not start it after all.
                Told::Nothing => {
                    if self.link.cancel(&key).await || heard.elapsed() >= self.lease + LEASE_MARGIN
                    {
                        return self.lose(started.elapsed()).await;
                    }
                    sleep(RETRY_EVERY).await;
                }
                Told::Silence(why) => {
                    if heard.elapsed() >= self.lease + LEASE_MARGIN {
                        tracing::warn!(task = %self.record.id, executor = %self.executor, why,
                            "an executor is silent for longer than its lease; the attempt is lost");
                        return self.lose(started.elapsed()).await;
                    }
                    sleep(RETRY_EVERY).await;
                }
            }
        }
    }

    /// Whether somebody asked another manager to stop it. Seldom, and never for long: whoever waits for the store does not
    /// renew the lease.
    async fn look_for_wish(&mut self, looked: &mut Instant) {
        let seldom = looked.elapsed() >= self.lease / 3;
        if !(self.shared_store && seldom) || self.record.state.cancel_asked {
            return;
        }
        *looked = Instant::now();
        let found = timeout(LOOK_MAX, self.store.get(&self.record.id)).await;
        if let Ok(Ok(Some(there))) = found
            && self.is_wish(&there.state)
        {
            self.kept = there.state.version;
            self.record.state = there.state;
            self.tell_state().await;
        }
    }

    /// Takes in that it is under way. Whether that is new.
    async fn saw(&mut self, view: &ExecutionView) -> bool {
        let (attempt, before) = (self.record.state.attempt, self.record.state.status);
        if before == TaskStatus::Queued {
            self.step(&TaskEvent::Accepted { attempt, fence: view.fence });
        }
        let provisioning = self.record.state.status == TaskStatus::Provisioning;
        if provisioning && view.state == ExecutionState::Running {
            self.step(&TaskEvent::Running { attempt });
        }
        let news = self.record.state.status != before;
        if news {
            self.tell_state().await;
        }
        news
    }

    /// Keeps that it is under way. False when the task is another's now. A store that does not answer must not keep it
    /// from being followed; it is kept with a later step then.
    async fn keep_under_way(&mut self) -> bool {
        let state = self.record.state.clone();
        match timeout(LOOK_MAX, self.keep(None, Durability::Process, Some(1))).await {
            Ok(Step::Overtaken(_)) => false,
            Ok(Step::Kept | Step::Failed(_)) => true,
            Err(_) => {
                self.unsure = Some(state);
                true
            }
        }
    }

    async fn end(
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

    async fn lose(&mut self, held: Duration) -> Option<TaskState> {
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

/// What an attempt wrote, up to a limit.
struct Output {
    chunks: Vec<OutputChunk>,
    bytes: usize,
    bytes_max: usize,
    cut: bool,
}

// === impl Output ===

impl Output {
    fn new(bytes_max: usize) -> Self {
        Self { chunks: Vec::new(), bytes: 0, bytes_max, cut: false }
    }

    /// Takes what is new, and gives back what of it is kept.
    fn take(&mut self, view: &ExecutionView) -> Vec<OutputChunk> {
        let mut taken = Vec::new();
        for chunk in &view.output {
            if self.bytes + chunk.text.len() > self.bytes_max {
                self.cut = true;
                break;
            }
            self.bytes += chunk.text.len();
            taken.push(chunk.clone());
            match self.chunks.last_mut() {
                Some(last) if last.stream == chunk.stream => last.text.push_str(&chunk.text),
                _ => self.chunks.push(chunk.clone()),
            }
        }
        taken
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
