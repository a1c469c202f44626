use super::credit::credits::Credits;
use super::credit::gate::Gate;
use super::error::TryRecvError;
use super::gauge::WindowGauge;
use super::inbox::{Found, Inbox, Taken};
use super::lease::Lease;
use super::sync::{Arc, Padded};
use super::turn::{Turn, poll_turn, poll_whole_turn};
use super::weight::Weigh;
use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::task::{Context, Poll, ready};

/// The end of a channel that receives. There is one.
///
/// Dropped, it drops what is queued, and senders that wait get their messages back.
pub struct WindowedReceiver<T> {
    inbox: Arc<Padded<Inbox<T>>>,
    gate: Arc<Gate>,
    /// Blocks taken from the inbox, handed out one message at a time.
    taken: Taken<T>,
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
        let turn = ready!(poll_turn(cx));
        self.poll_take(cx, turn, |receiver| receiver.take_released())
    }

    /// A message that is queued now; its credits return at once.
    ///
    /// # Errors
    ///
    /// When nothing is queued: [`TryRecvError::Disconnected`] if nothing will be, else [`TryRecvError::Empty`].
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        self.try_take(Self::take_released)
    }

    /// Waits for a message, then appends what is queued, at most `limit` messages; their credits return at once.
    /// Returns their number: 0 when nothing more will come, or when `limit` is 0.
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
            poll_fn(|cx| {
                let turn = ready!(poll_whole_turn(cx));
                self.poll_take(cx, turn, |receiver| take(receiver, out))
            })
            .await;
        }
        out.len() - before
    }

    /// As [`recv_many`](Self::recv_many), but the credits return only when the lease ends. `None` when nothing
    /// more will come. With a `limit` of 0 the lease holds nothing.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it resolves, it has received nothing.
    pub async fn lease_many(&mut self, out: &mut Vec<T>, limit: usize) -> Option<Lease> {
        if limit == 0 {
            return Some(Lease::new(&self.gate, Credits::NONE));
        }
        poll_fn(|cx| {
            let turn = ready!(poll_whole_turn(cx));
            self.poll_take(cx, turn, |receiver| receiver.take_leased(out, limit))
        })
        .await
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
        self.try_take(|receiver| receiver.take_leased(out, limit))
    }

    fn poll_take<R>(
        &mut self,
        cx: &mut Context<'_>,
        turn: Turn,
        mut take: impl FnMut(&mut Self) -> Option<R>,
    ) -> Poll<Option<R>> {
        let mut taken = take(self);
        if taken.is_none() {
            match self.inbox.0.take(&mut self.taken, Some(cx.waker())) {
                Found::Some => taken = take(self),
                Found::End => {}
                Found::Nothing => {
                    self.gate.serve_if_waiting();
                    if !self.gate.is_ended(Some(cx.waker())) {
                        return Poll::Pending;
                    }
                }
            }
        }
        turn.made_progress();
        Poll::Ready(taken)
    }

    fn try_take<R>(
        &mut self,
        mut take: impl FnMut(&mut Self) -> Option<R>,
    ) -> Result<R, TryRecvError> {
        if let Some(taken) = take(self) {
            return Ok(taken);
        }
        match self.inbox.0.take(&mut self.taken, None) {
            Found::Some => return take(self).ok_or(TryRecvError::Empty),
            Found::End => return Err(TryRecvError::Disconnected),
            Found::Nothing => self.gate.serve_if_waiting(),
        }
        let ended = self.gate.is_ended(None);
        Err(if ended { TryRecvError::Disconnected } else { TryRecvError::Empty })
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
        let block = self.taken.blocks.front_mut()?;
        let taken = block.next();
        if block.len() == 0 {
            self.retire();
        }
        taken
    }

    /// Up to `limit` messages, which is not 0, and what they took.
    fn take_many(&mut self, out: &mut Vec<T>, limit: usize) -> Option<Credits> {
        let mut room = limit;
        let mut credits = Credits::NONE;
        while room > 0
            && let Some(block) = self.taken.blocks.front_mut()
        {
            if block.len() <= room {
                let fills = block.len() == room;
                room -= block.len();
                credits += self.take_block(out, fills);
            } else {
                for (message, taken) in std::iter::from_fn(|| block.next()).take(room) {
                    out.push(message);
                    credits += taken;
                }
                room = 0;
            }
            // What has come meanwhile is for the same call, if there is room.
            if room > 0 && self.taken.blocks.is_empty() {
                self.inbox.0.take(&mut self.taken, None);
            }
        }
        (room < limit).then_some(credits)
    }

    /// The whole first block. If it is all that is asked for nothing is copied: its buffer goes out, and the
    /// caller's comes in.
    fn take_block(&mut self, out: &mut Vec<T>, fills: bool) -> Credits {
        let Some(block) = self.taken.blocks.pop_front() else { return Credits::NONE };
        let (mut messages, credits) = block.into_parts();
        if out.is_empty() && (fills || out.capacity() < messages.len()) {
            let buffer = std::mem::replace(out, Vec::from(messages));
            self.taken.recycle(VecDeque::from(buffer));
        } else {
            out.extend(messages.drain(..));
            self.taken.recycle(messages);
        }
        credits
    }

    /// The first block is empty.
    fn retire(&mut self) {
        if let Some(block) = self.taken.blocks.pop_front() {
            self.taken.recycle(block.into_parts().0);
        }
    }
}

impl<T> WindowedReceiver<T> {
    pub(super) fn new(inbox: Arc<Padded<Inbox<T>>>, gate: Arc<Gate>) -> Self {
        Self { inbox, gate, taken: Taken::new() }
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
        let left = self.inbox.0.abandon();
        for block in self.taken.blocks.drain(..).chain(left) {
            self.gate.release(block.credits());
        }
    }
}

impl<T> fmt::Debug for WindowedReceiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WindowedReceiver").field("gauge", &self.gauge()).finish_non_exhaustive()
    }
}
