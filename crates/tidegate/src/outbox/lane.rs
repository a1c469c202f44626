//! Implementation: what a destination's producers and its sender share.

use super::envelope::FailedMessage;
use super::envelope::{Envelope, Ticket};
use super::error::{EnqueueError, EnqueueReason};
use super::transport::{Destination, Transport};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tidegate_core::admission::MessageClass;
use tidegate_core::outbox::{
    DestinationQueueStats, Put, QueueState, Refused, RobustQueue, SenderStats,
};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Life cycle of a lane. Moves only down this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mode {
    /// Accepts messages, and its sender runs.
    Open,
    /// Nothing new is taken; the sender ends when all is sent.
    Draining,
    /// The sender ends now and leaves what is unsent to whoever stopped it.
    Stopped,
    /// The sender ends now; nobody is left to take what is unsent but the hand-back.
    Abandoned,
}

/// One destination.
pub(super) struct Lane<T: Transport> {
    pub(super) destination: T::Destination,
    inner: Mutex<Inner<T>>,
    /// There is something to do for the sender.
    wake: Notify,
    /// The sender should drop what it does.
    stop: Notify,
    ended: Notify,
    last_used: AtomicU64,
}

struct Inner<T: Transport> {
    queue: RobustQueue<Envelope<T>>,
    mode: Mode,
    ended: bool,
    /// Its sender has left what it did not send: only then is there nothing more to wait for.
    announced: bool,
    /// The sender sleeps until so many messages wait; nobody has to wake one that is busy.
    wake_at: usize,
    sender: SenderStats,
    unsent: Vec<FailedMessage<T>>,
}

/// State of the lane as its sender finds it.
enum Look {
    Ready,
    Wait,
    End,
}

const BUSY: usize = usize::MAX;

// === impl Lane ===

impl<T: Transport> Lane<T> {
    pub(super) fn new(destination: T::Destination, queue: RobustQueue<Envelope<T>>) -> Self {
        let inner = Inner {
            queue,
            mode: Mode::Open,
            ended: false,
            announced: false,
            wake_at: BUSY,
            sender: SenderStats::default(),
            unsent: Vec::new(),
        };
        Self {
            destination,
            inner: Mutex::new(inner),
            wake: Notify::new(),
            stop: Notify::new(),
            ended: Notify::new(),
            last_used: AtomicU64::new(0),
        }
    }

    /// Nothing in here panics half way, so a poisoned lock holds what it should.
    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn put(
        &self,
        envelope: Envelope<T>,
        tick: u64,
    ) -> Result<Put<Envelope<T>>, EnqueueError<Envelope<T>>> {
        self.last_used.store(tick, Ordering::Relaxed);
        let class = envelope.ticket.class;
        let mut inner = self.lock();
        if inner.ended || inner.mode > Mode::Open {
            let state = inner.queue.state();
            return Err(closed(envelope, state));
        }
        let put = inner.queue.put(class, envelope).map_err(refused)?;
        let asleep = inner.wake_at != BUSY;
        let wake = asleep && (inner.queue.len() >= inner.wake_at || class == MessageClass::Control);
        if wake {
            inner.wake_at = BUSY;
        }
        drop(inner);
        if wake {
            self.wake.notify_one();
        }
        Ok(put)
    }

    /// Nothing queued and nothing being sent.
    pub(super) fn is_idle(&self) -> bool {
        let inner = self.lock();
        inner.queue.is_empty() && inner.sender.in_flight == 0
    }

    pub(super) fn last_used(&self) -> u64 {
        self.last_used.load(Ordering::Relaxed)
    }

    pub(super) fn state(&self) -> QueueState {
        self.lock().queue.state()
    }

    pub(super) fn stats(&self) -> DestinationQueueStats {
        let inner = self.lock();
        DestinationQueueStats {
            destination_host: self.destination.host(),
            destination_port: self.destination.port(),
            queue: inner.queue.stats(),
            sender: inner.sender,
        }
    }

    // --- what its owner says ---

    pub(super) fn drain(&self) {
        self.lower_to(Mode::Draining);
    }

    pub(super) fn stop(&self) {
        self.lower_to(Mode::Stopped);
    }

    pub(super) fn abandon(&self) {
        self.lower_to(Mode::Abandoned);
    }

    fn lower_to(&self, mode: Mode) {
        let mut inner = self.lock();
        inner.mode = inner.mode.max(mode);
        inner.wake_at = BUSY;
        drop(inner);
        self.wake.notify_one();
        if mode > Mode::Draining {
            self.stop.notify_one();
        }
    }

    pub(super) async fn ended(&self) {
        loop {
            let ended = self.ended.notified();
            if self.lock().announced {
                return;
            }
            ended.await;
        }
    }

    pub(super) fn take_unsent(&self) -> Vec<FailedMessage<T>> {
        std::mem::take(&mut self.lock().unsent)
    }

    // --- what its sender does ---

    /// Waits until so many messages wait, or a control message does; `false` when the sender should end.
    pub(super) async fn enough(&self, messages: usize) -> bool {
        loop {
            match self.look(messages) {
                Look::Ready => return true,
                Look::End => return false,
                Look::Wait => self.wake.notified().await,
            }
        }
    }

    fn look(&self, enough: usize) -> Look {
        let mut inner = self.lock();
        let empty = inner.queue.is_empty();
        inner.wake_at = BUSY;
        match inner.mode {
            Mode::Stopped | Mode::Abandoned => Look::End,
            Mode::Draining if empty => Look::End,
            Mode::Draining => Look::Ready,
            Mode::Open if inner.queue.len() >= enough || inner.queue.control_len() > 0 => {
                Look::Ready
            }
            Mode::Open => {
                inner.wake_at = enough;
                Look::Wait
            }
        }
    }

    /// Waits until the sender has to drop what it does.
    pub(super) async fn stopped(&self) {
        while self.lock().mode < Mode::Stopped {
            self.stop.notified().await;
        }
    }

    /// Takes the next batch, without those that nobody waits for any more. Those that came too late are returned.
    pub(super) fn take(
        &self,
        max: usize,
        now: Instant,
        messages: &mut Vec<T::Message>,
        tickets: &mut Vec<Ticket<T>>,
    ) -> Vec<Envelope<T>> {
        let mut expired = Vec::new();
        let mut inner = self.lock();
        inner.wake_at = BUSY;
        // Those that came too late count: what was taken out of the queue has a bound as well.
        while messages.len() + expired.len() < max {
            let Some(envelope) = inner.queue.get() else { break };
            if envelope.is_withdrawn() {
                inner.sender.total_withdrawn += 1;
            } else if envelope.ticket.expires <= now {
                inner.sender.total_failed += 1;
                expired.push(envelope);
            } else {
                messages.push(envelope.message);
                tickets.push(envelope.ticket);
            }
        }
        inner.sender.in_flight = messages.len();
        expired
    }

    /// Counts what became of those that were taken.
    pub(super) fn count_ends(&self, sent: usize, failed: usize) {
        let mut inner = self.lock();
        inner.sender.total_sent += sent as u64;
        inner.sender.total_failed += failed as u64;
        inner.sender.in_flight -= sent + failed;
    }

    /// Puts messages that were taken back to the head, the last of them first. Those that had to make room, or
    /// found none, are returned.
    pub(super) fn put_back(&self, last_first: Vec<Envelope<T>>) -> Vec<Envelope<T>> {
        let mut displaced = Vec::new();
        let mut inner = self.lock();
        for envelope in last_first {
            inner.sender.in_flight -= 1;
            match inner.queue.put_back(envelope.ticket.class, envelope) {
                Ok(put) => {
                    inner.sender.total_retried += 1;
                    displaced.extend(put.dropped);
                }
                Err(refused) => {
                    inner.sender.total_failed += 1;
                    displaced.push(refused.value);
                }
            }
        }
        displaced
    }

    /// The sender ends. Takes everything that still waits, behind `in_hand`, and tells in which mode it ended.
    pub(super) fn close(&self, in_hand: usize) -> (Vec<Envelope<T>>, Mode) {
        let mut inner = self.lock();
        inner.ended = true;
        let queued: Vec<_> = std::iter::from_fn(|| inner.queue.get()).collect();
        inner.sender.total_failed += (queued.len() + in_hand) as u64;
        inner.sender.in_flight = 0;
        (queued, inner.mode)
    }

    /// Leaves what was not sent to whoever waits for the end.
    pub(super) fn announce_end(&self, unsent: Vec<FailedMessage<T>>) {
        let mut inner = self.lock();
        inner.unsent = unsent;
        inner.announced = true;
        drop(inner);
        self.ended.notify_waiters();
    }
}

fn closed<T: Transport>(envelope: Envelope<T>, state: QueueState) -> EnqueueError<Envelope<T>> {
    let delay = std::time::Duration::ZERO;
    EnqueueError { message: envelope, reason: EnqueueReason::Closed, state, delay }
}

fn refused<T: Transport>(refused: Refused<Envelope<T>>) -> EnqueueError<Envelope<T>> {
    let Refused { value, reason, state, delay, .. } = refused;
    EnqueueError { message: value, reason: EnqueueReason::Refused(reason), state, delay }
}
