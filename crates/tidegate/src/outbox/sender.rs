//! Implementation: the loop that empties one destination's queue.

use super::config::OutgoingConfig;
use super::envelope::{Envelope, Ticket};
use super::error::SendFailure;
use super::hand_back::HandBackSender;
use super::lane::{Lane, Mode};
use super::transport::{Delivery, Transport, Undelivered};
use crate::rng::Rng;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tidegate_core::retry::{Failure, RetryBudget, Safety, full_jitter};
use tokio::time::{Instant, sleep_until, timeout};

/// State shared by all senders of a manager.
pub(super) struct Shared<T: Transport> {
    pub(super) transport: T,
    pub(super) config: OutgoingConfig,
    /// Messages that one send takes, at least 1.
    pub(super) batch_max: usize,
    /// Where the time of the retry budgets begins.
    pub(super) started: Instant,
    pub(super) hand_back: HandBackSender<T>,
}

/// The sender of one destination.
///
/// Messages stay in its fields while they are being sent: if the send or the sender itself is cancelled, they
/// can still be handed back.
pub(super) struct Sender<T: Transport> {
    shared: Arc<Shared<T>>,
    lane: Arc<Lane<T>>,
    budget: RetryBudget,
    rng: Rng,
    /// Attempts that have failed since the last one that did not.
    failures: u32,
    messages: Vec<T::Message>,
    tickets: Vec<Ticket<T>>,
}

/// Result of an attempt.
enum Attempt<T: Transport> {
    Answered(Delivery<T::Reply, T::Error>),
    TimedOut,
    Panicked,
    Stopped,
}

// === impl Sender ===

impl<T: Transport> Sender<T> {
    pub(super) fn new(shared: Arc<Shared<T>>, lane: Arc<Lane<T>>, number: u64) -> Self {
        Self {
            budget: RetryBudget::new(shared.config.budget),
            rng: Rng::stream(shared.config.seed, number),
            failures: 0,
            messages: Vec::new(),
            tickets: Vec::new(),
            shared,
            lane,
        }
    }

    /// Sends until the lane is stopped, or drained. What is left then is taken care of by the drop.
    pub(super) async fn run(mut self) {
        while self.lane.enough(1).await && self.pace().await {
            self.take();
            if self.messages.is_empty() {
                continue;
            }
            match self.attempt().await {
                Attempt::Answered(Ok(replies)) => self.delivered(replies),
                Attempt::Answered(Err(undelivered)) => self.undelivered(undelivered),
                Attempt::TimedOut => self.failed(SendFailure::TimedOut, Failure::Lost),
                Attempt::Panicked => self.failed(SendFailure::Panicked, Failure::Lost),
                Attempt::Stopped => return,
            }
            self.back_off().await;
            // A transport that is always ready must not keep its thread from everybody else.
            tokio::task::consume_budget().await;
        }
    }

    /// Waits as long as the queue's state says for a fuller batch, and not at all for one that can't get fuller.
    ///
    /// A transport that can't batch is never paced: its sender would only get slower than it is, the queue
    /// fuller, and the pace slower still. A batch counts as full when the primary is: waiting longer would push
    /// messages out. `false` when the sender should end.
    async fn pace(&self) -> bool {
        let queue = &self.shared.config.queue;
        let delay = queue.delays.of(self.lane.state());
        if self.shared.batch_max == 1 || delay.is_zero() {
            return true;
        }
        let full = self.shared.batch_max.min(queue.primary_size);
        // When the delay is over it is time to send, however much there is.
        timeout(delay, self.lane.enough(full)).await.unwrap_or(true)
    }

    fn take(&mut self) {
        let now = Instant::now();
        let max = self.shared.batch_max;
        let expired = self.lane.take(max, now, &mut self.messages, &mut self.tickets);
        for envelope in expired {
            self.give_up(envelope, SendFailure::Expired);
        }
    }

    async fn attempt(&mut self) -> Attempt<T> {
        let is_retry = self.tickets.iter().any(|ticket| ticket.attempts > 0);
        if !is_retry {
            self.budget.record_request(self.now());
        }
        self.tickets.iter_mut().for_each(|ticket| ticket.attempts += 1);
        let Shared { transport, config, .. } = &*self.shared;
        // As long as one message of the batch has time, the others may still be in it.
        let expires = self.tickets.iter().map(|ticket| ticket.expires).max();
        let ends = far(Instant::now(), config.attempt_timeout);
        let ends = expires.map_or(ends, |expires| expires.min(ends));
        let send = async { transport.send(&self.lane.destination, &self.messages).await };
        tokio::select! {
            biased;
            attempt = guarded(send) => attempt,
            () = sleep_until(ends) => Attempt::TimedOut,
            () = self.lane.stopped() => Attempt::Stopped,
        }
    }

    fn delivered(&mut self, replies: Vec<T::Reply>) {
        self.failures = 0;
        self.answer(replies);
        if !self.tickets.is_empty() {
            self.failed(SendFailure::NoReply, Failure::Lost);
        }
    }

    fn undelivered(&mut self, undelivered: Undelivered<T::Reply, T::Error>) {
        let Undelivered { replies, failure, error } = undelivered;
        self.answer(replies);
        self.failed(SendFailure::Transport(Arc::new(error)), failure);
    }

    /// Gives the first messages of the batch their replies.
    fn answer(&mut self, replies: Vec<T::Reply>) {
        let count = replies.len().min(self.tickets.len());
        // What is not in flight any more is not held any more either.
        drop(self.messages.drain(..count));
        self.lane.count_ends(count, 0);
        for (ticket, reply) in self.tickets.drain(..count).zip(replies) {
            ticket.succeed(reply);
        }
    }

    /// Puts what is left of the batch back to the head of the queue where it may be sent again, and gives up
    /// the rest.
    fn failed(&mut self, cause: SendFailure<T::Error>, failure: Failure) {
        self.failures = match failure {
            // The message is at fault. The destination is there, and has said so.
            Failure::Final => 0,
            _ => self.failures.saturating_add(1),
        };
        if failure == Failure::Lost {
            self.doubt();
        }
        let last_first: Vec<_> = self.in_hand().rev().collect();
        let now = Instant::now();
        let attempts_max = self.shared.config.attempts_max;
        let in_time = |envelope: &Envelope<T>| {
            envelope.ticket.attempts < attempts_max && now < envelope.ticket.expires
        };
        // The budget is asked last: what it grants is spent.
        let again = self.may_repeat(failure)
            && last_first.iter().any(in_time)
            && self.budget.try_retry(self.now());
        let (again, over): (Vec<_>, Vec<_>) =
            last_first.into_iter().partition(|envelope| again && in_time(envelope));
        self.lane.count_ends(0, over.len());
        for envelope in over.into_iter().rev() {
            self.give_up(envelope, cause.clone());
        }
        for envelope in self.lane.put_back(again) {
            self.give_up(envelope, SendFailure::Displaced);
        }
    }

    /// Nobody knows whether what is in hand was delivered.
    fn doubt(&mut self) {
        self.tickets.iter_mut().for_each(|ticket| ticket.maybe_delivered = true);
    }

    fn may_repeat(&self, failure: Failure) -> bool {
        match failure {
            Failure::Refused | Failure::Unreachable => true,
            Failure::Lost => self.shared.config.safety == Safety::Idempotent,
            Failure::Final => false,
        }
    }

    /// Waits after a failure, also before messages that have not failed yet: it is the destination that did.
    async fn back_off(&mut self) {
        let Some(doublings) = self.failures.checked_sub(1) else { return };
        let config = &self.shared.config;
        let chance = self.rng.fraction();
        let wait = full_jitter(config.backoff_base, config.backoff_cap, doublings, chance);
        let _ = timeout(wait, self.lane.stopped()).await;
    }

    fn in_hand(&mut self) -> impl DoubleEndedIterator<Item = Envelope<T>> {
        let together = self.messages.drain(..).zip(self.tickets.drain(..));
        together.map(|(message, ticket)| Envelope { message, ticket })
    }

    fn give_up(&self, envelope: Envelope<T>, cause: SendFailure<T::Error>) {
        self.shared.hand_back.give_up(&self.lane.destination, envelope, cause);
    }

    fn now(&self) -> Duration {
        self.shared.started.elapsed()
    }
}

/// However it ends, stopped, drained, with its runtime or by a panic of ours: what it leaves goes to somebody.
impl<T: Transport> Drop for Sender<T> {
    fn drop(&mut self) {
        self.doubt();
        let in_hand: Vec<_> = self.in_hand().collect();
        let (queued, mode) = self.lane.close(in_hand.len());
        let mut unsent = Vec::new();
        for envelope in in_hand.into_iter().chain(queued) {
            let failed = envelope.fail(&self.lane.destination, SendFailure::Closed);
            match (failed, mode) {
                (Some(failed), Mode::Draining | Mode::Stopped) => unsent.push(failed),
                (Some(failed), Mode::Open | Mode::Abandoned) => {
                    self.shared.hand_back.hand_back(failed);
                }
                (None, _) => {}
            }
        }
        self.lane.announce_end(unsent);
    }
}

/// A panic of the transport is a failed attempt, and not the end of the sender.
async fn guarded<T: Transport>(
    send: impl Future<Output = Delivery<T::Reply, T::Error>>,
) -> Attempt<T> {
    let mut send = pin!(send);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| send.as_mut().poll(context))) {
        Ok(poll) => poll.map(Attempt::Answered),
        Err(_) => Poll::Ready(Attempt::Panicked),
    })
    .await
}

/// As long as this from `now`; a year where that is beyond what the clock can tell.
pub(super) fn far(now: Instant, duration: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    now.checked_add(duration.min(YEAR)).unwrap_or(now)
}
