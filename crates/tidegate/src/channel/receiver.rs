use super::credits::Credits;
use super::entry::{Chunk, Entry};
use super::error::TryRecvError;
use super::gate::Gate;
use super::gauge::WindowGauge;
use super::lease::Lease;
use super::sync::{Arc, Queue};
use super::weight::Weigh;
use std::fmt;
use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use tokio::task::coop::poll_proceed;

/// The end of a channel that receives. There is one.
///
/// Dropped, it drops what is queued, and senders that wait get their messages back.
pub struct WindowedReceiver<T> {
    queue: Arc<Queue<Entry<T>>>,
    gate: Arc<Gate>,
    /// What was sent together and is received bit by bit.
    chunk: Option<Chunk<T>>,
}

// === impl WindowedReceiver ===

impl<T: Weigh> WindowedReceiver<T> {
    /// The next message; its credits return at once. `None` when nothing more will come: all senders are gone, or
    /// the channel was closed, and everything that was sent has been received.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it resolves, it has received nothing.
    pub async fn recv(&mut self) -> Option<T> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// As [`recv`](Self::recv), for those who write futures by hand.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.poll_take(cx, |receiver| receiver.take_released())
    }

    /// A message that is queued now; its credits return at once.
    ///
    /// # Errors
    ///
    /// When nothing is queued: [`TryRecvError::Disconnected`] if nothing will be, else [`TryRecvError::Empty`].
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        if let Some(message) = self.take_released() {
            return Ok(message);
        }
        if self.gate.is_ended() {
            return self.take_released().ok_or(TryRecvError::Disconnected);
        }
        Err(TryRecvError::Empty)
    }

    /// Waits for a message, then appends what is queued, at most `limit` messages; their credits return at once.
    /// How many there were: 0 when nothing more will come, or when `limit` is 0.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it resolves, it has received nothing.
    pub async fn recv_many(&mut self, out: &mut Vec<T>, limit: usize) -> usize {
        let before = out.len();
        let take = |receiver: &mut Self, out: &mut Vec<T>| {
            let credits = receiver.take_many(out, limit)?;
            receiver.gate.release(credits);
            receiver.gate.count_departed(credits);
            Some(())
        };
        if limit > 0 {
            poll_fn(|cx| self.poll_take(cx, |receiver| take(receiver, out))).await;
        }
        out.len() - before
    }

    /// As [`recv_many`](Self::recv_many), but the credits return only when the lease ends. `None` when nothing more
    /// will come. With a `limit` of 0 the lease holds nothing.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it resolves, it has received nothing.
    pub async fn lease_many(&mut self, out: &mut Vec<T>, limit: usize) -> Option<Lease> {
        if limit == 0 {
            return Some(Lease::new(&self.gate, Credits::NONE));
        }
        poll_fn(|cx| self.poll_take(cx, |receiver| receiver.take_leased(out, limit))).await
    }

    /// As [`lease_many`](Self::lease_many), of what is queued now.
    ///
    /// # Errors
    ///
    /// When nothing is queued: [`TryRecvError::Disconnected`] if nothing will be, else [`TryRecvError::Empty`].
    pub fn try_lease_many(
        &mut self,
        out: &mut Vec<T>,
        limit: usize,
    ) -> Result<Lease, TryRecvError> {
        if limit == 0 {
            return Ok(Lease::new(&self.gate, Credits::NONE));
        }
        if let Some(lease) = self.take_leased(out, limit) {
            return Ok(lease);
        }
        if self.gate.is_ended() {
            return self.take_leased(out, limit).ok_or(TryRecvError::Disconnected);
        }
        Err(TryRecvError::Empty)
    }

    fn poll_take<R>(
        &mut self,
        cx: &mut Context<'_>,
        mut take: impl FnMut(&mut Self) -> Option<R>,
    ) -> Poll<Option<R>> {
        let turn = ready!(poll_proceed(cx));
        let mut taken = take(self);
        if taken.is_none() {
            self.gate.parking.0.prepare(cx.waker());
            taken = take(self);
            if taken.is_none() {
                if !self.gate.is_ended() {
                    return Poll::Pending;
                }
                taken = take(self);
            }
            self.gate.parking.0.stay_awake();
        }
        turn.made_progress();
        Poll::Ready(taken)
    }

    fn take_released(&mut self) -> Option<T> {
        let (message, credits) = self.take_one()?;
        self.gate.release(credits);
        self.gate.count_departed(credits);
        Some(message)
    }

    fn take_leased(&mut self, out: &mut Vec<T>, limit: usize) -> Option<Lease> {
        let credits = self.take_many(out, limit)?;
        self.gate.lease(credits);
        self.gate.count_departed(credits);
        Some(Lease::new(&self.gate, credits))
    }

    fn take_one(&mut self) -> Option<(T, Credits)> {
        if let Some(taken) = self.chunk.as_mut().and_then(Chunk::next) {
            return Some(taken);
        }
        match self.queue.pop()? {
            Entry::One(message, credits) => Some((message, credits)),
            Entry::Many(chunk) => self.chunk.insert(chunk).next(),
        }
    }

    /// Up to `limit` messages, which is not 0, and what they took.
    fn take_many(&mut self, out: &mut Vec<T>, limit: usize) -> Option<Credits> {
        let mut room = limit;
        let mut credits = Credits::NONE;
        while room > 0 {
            let entry = match self.chunk.take() {
                Some(chunk) => Some(Entry::Many(chunk)),
                None => self.queue.pop(),
            };
            match entry {
                None => break,
                Some(Entry::One(message, taken)) => {
                    out.push(message);
                    credits += taken;
                    room -= 1;
                }
                Some(Entry::Many(chunk)) if chunk.len() <= room => {
                    room -= chunk.len();
                    credits += chunk.drain_into(out);
                }
                Some(Entry::Many(chunk)) => {
                    let chunk = self.chunk.insert(chunk);
                    for (message, taken) in std::iter::from_fn(|| chunk.next()).take(room) {
                        out.push(message);
                        credits += taken;
                    }
                    room = 0;
                }
            }
        }
        (room < limit).then_some(credits)
    }
}

impl<T> WindowedReceiver<T> {
    pub(super) fn new(queue: Arc<Queue<Entry<T>>>, gate: Arc<Gate>) -> Self {
        Self { queue, gate, chunk: None }
    }

    /// Takes no more messages: senders that wait, and those that come, get theirs back. What was sent can still be
    /// received, also from a sender that had been admitted and was on its way.
    pub fn close(&mut self) {
        self.gate.close();
    }

    /// Resizes the channel and reads how full it is.
    #[must_use]
    pub fn gauge(&self) -> WindowGauge {
        WindowGauge::new(&self.gate)
    }
}

impl<T> Drop for WindowedReceiver<T> {
    fn drop(&mut self) {
        self.gate.close();
        self.gate.parking.0.leave();
        if let Some(chunk) = self.chunk.take() {
            self.gate.release(chunk.credits());
        }
        discard(&self.queue, &self.gate);
    }
}

impl<T> fmt::Debug for WindowedReceiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WindowedReceiver").field("gauge", &self.gauge()).finish_non_exhaustive()
    }
}

/// Drops what nobody will receive.
pub(super) fn discard<T>(queue: &Queue<Entry<T>>, gate: &Gate) {
    while let Some(entry) = queue.pop() {
        gate.release(entry.credits());
    }
}
