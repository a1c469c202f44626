use super::attempt::Attempt;
use super::event::Event;
use super::keeping::Step;
use super::link::{Link, Told};
use crate::worker::{ExecutionState, ExecutionView};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tidegate::task::{ExecutionKey, OutputChunk, TaskEvent, TaskState, TaskStatus};
use tidegate::tasks::{Durability, TaskStore};
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// Between two tries to reach an executor.
const RETRY_EVERY: Duration = Duration::from_millis(250);
/// A task that ends within this is kept once instead of several times: that it was provisioning is not worth a
/// write.
const SHORT: Duration = Duration::from_millis(10);
/// How long an answer is waited for; below the lease, which it renews.
const POLL_MAX: Duration = Duration::from_secs(10);
/// Between two questions to an executor that answers at once and has nothing to say; it doubles.
const PACE_FIRST: Duration = Duration::from_millis(20);
const PACE_MAX: Duration = Duration::from_secs(1);
/// How long the store is waited for while an execution has to be followed.
const LOOK_MAX: Duration = Duration::from_secs(1);
/// Beyond the lease until an attempt counts as lost: the executor's clock starts when it hears of us, ours when it
/// answers, and then it has to stop the execution.
const LEASE_MARGIN: Duration = Duration::from_secs(2);

/// How far an attempt has been followed.
struct Following {
    key: ExecutionKey,
    fence: Option<u64>,
    link: Arc<Link>,
    /// How long an answer is waited for.
    wait: Duration,
    started: Instant,
    /// When the executor last knew of it.
    heard: Instant,
    /// How much of its output is here.
    after: u64,
    output: Output,
    /// When that it is under way is kept.
    keep_at: Instant,
    told_to_stop: bool,
    /// When the store was last looked into for a wish.
    looked: Instant,
    pace: Duration,
}

/// What an attempt wrote, up to a limit.
struct Output {
    chunks: Vec<OutputChunk>,
    bytes: usize,
    bytes_max: usize,
    cut: bool,
}

/// What comes next.
enum Next {
    /// The executor has answered.
    Told(Told),
    /// Somebody wants it to stop.
    Wish,
    /// It is not this manager's any more.
    Gone,
}

// === impl Attempt ===

impl<S: TaskStore> Attempt<S> {
    /// Follows it to its end. `None` when the task is another's now.
    pub(super) async fn follow_to_the_end(&mut self) -> Option<TaskState> {
        let mut following = Following::of(self);
        loop {
            self.pass_on_wish(&mut following).await;
            let asked_at = Instant::now();
            let told = match self.next(&mut following).await {
                Next::Told(told) => told,
                Next::Wish => continue,
                Next::Gone => return None,
            };
            let silent = following.heard.elapsed() >= self.lease + LEASE_MARGIN;
            match told {
                Told::View(view) => {
                    let news = self.take_view(&view, &mut following).await;
                    if let Some(mut ending) = view.ending() {
                        ending.output_cut |= following.output.cut;
                        let held = following.started.elapsed();
                        return self.end(ending, following.output.chunks, held).await;
                    }
                    self.look_for_wish(&mut following.looked).await;
                    following.keep_pace(news, asked_at).await;
                    continue;
                }
                // Started anew, it has forgotten everything, and what it ran is gone. A request of ours that is
                // still on its way must not start it after all.
                Told::Nothing => {
                    if self.link.cancel(&following.key).await || silent {
                        return self.lose(following.started.elapsed()).await;
                    }
                }
                Told::Silence(why) if silent => {
                    tracing::warn!(task = %self.record.id, executor = %self.executor, why,
                        "an executor is silent for longer than its lease; the attempt is lost");
                    return self.lose(following.started.elapsed()).await;
                }
                Told::Silence(_) => {}
            }
            sleep(RETRY_EVERY).await;
        }
    }

    /// Who wants it to stop is heard here, whoever it told.
    async fn pass_on_wish(&mut self, following: &mut Following) {
        let asked = *self.cancel.borrow_and_update() || self.record.state.cancel_asked;
        if asked && !following.told_to_stop {
            if !self.record.state.cancel_asked {
                self.step(&TaskEvent::CancelAsked);
            }
            following.told_to_stop = self.link.cancel(&following.key).await;
        }
    }

    /// What the executor answers to one long question. Meanwhile that the attempt is under way is kept, if it is
    /// not.
    async fn next(&mut self, following: &mut Following) -> Next {
        let Following { fence, wait, after, .. } = *following;
        let (link, key) = (Arc::clone(&following.link), following.key.clone());
        let mut follow = pin!(link.follow(&key, fence, wait, after));
        let mut keep_at = following.keep_at;
        let next = loop {
            let unkept = self.record.state.version != self.kept;
            tokio::select! {
                told = &mut follow => break Next::Told(told),
                changed = self.cancel.changed(), if !following.told_to_stop => match changed {
                    Ok(()) => break Next::Wish,
                    // The manager is about to end.
                    Err(_) => break Next::Gone,
                },
                () = sleep_until(keep_at), if unkept => {
                    keep_at = Instant::now() + LOOK_MAX;
                    if !self.keep_under_way().await {
                        break Next::Gone;
                    }
                }
            }
        };
        following.keep_at = keep_at;
        next
    }

    /// Takes in what the executor says. Whether it is new.
    async fn take_view(&mut self, view: &ExecutionView, following: &mut Following) -> bool {
        following.heard = Instant::now();
        let wrote = view.next != following.after;
        following.after = view.next;
        let chunks = following.output.take(view);
        let over = view.ending().is_some();
        let news = (!over && self.saw(view).await) || wrote;
        if !chunks.is_empty() {
            let (ticket, attempt) = (self.ticket, following.key.attempt);
            self.tell(Event::Wrote { ticket, attempt, chunks }).await;
        }
        news
    }

    /// Whether somebody asked another manager to stop it. Seldom, and never for long: whoever waits for the store
    /// does not renew the lease.
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

    /// Keeps that it is under way. False when the task is another's now. A store that does not answer must not
    /// keep it from being followed; it is kept with a later step then.
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
}

// === impl Following ===

impl Following {
    fn of<S: TaskStore>(attempt: &Attempt<S>) -> Self {
        let now = Instant::now();
        Self {
            key: attempt.key(),
            fence: attempt.record.state.placed.as_ref().and_then(|placed| placed.fence),
            link: Arc::clone(&attempt.link),
            // One long question is two messages; whoever asks again and again says more than the task is worth.
            wait: POLL_MAX.min(attempt.lease / 3),
            started: now,
            heard: now,
            after: 0,
            output: Output::new(attempt.output_bytes_max),
            keep_at: now + SHORT,
            told_to_stop: false,
            looked: now,
            pace: PACE_FIRST,
        }
    }

    /// An executor that does not wait although it was asked to is not asked without a pause.
    async fn keep_pace(&mut self, news: bool, asked_at: Instant) {
        if news || asked_at.elapsed() >= self.wait / 2 {
            self.pace = PACE_FIRST;
            return;
        }
        sleep(self.pace).await;
        self.pace = (self.pace * 2).min(PACE_MAX);
    }
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
