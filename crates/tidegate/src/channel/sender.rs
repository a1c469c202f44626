use super::batch::Batch;
use super::credit::acquire::{Acquire, AwaitClose};
use super::credit::credits::Credits;
use super::credit::gate::{Gate, NotTaken};
use super::error::{Closed, SendError, SlotError, TrySendError};
use super::gauge::WindowGauge;
use super::inbox::Inbox;
use super::sync::{Arc, Padded};
use super::weight::{Weigh, Weight};
use std::fmt;

/// An end of a channel that sends. Clone it to have several.
///
/// Messages of one sender arrive in order. Senders that have to wait are served first come, first served, and no
/// sender overtakes them: a heavy message is not starved by light ones. A message heavier than the
/// whole window is admitted when nothing is in flight, and then has the channel for itself.
///
/// While something is queued, receives let those who wait in when an eighth of the window is free, not for each
/// message (a window of fewer than 16 items: at once). Nothing is later for it: what is sent is received in order.
pub struct WindowedSender<T> {
    inbox: Arc<Padded<Inbox<T>>>,
    gate: Arc<Gate>,
}

/// Credits that were taken for a message that is still to come. Dropped, it returns them.
#[must_use = "dropped, it returns what it reserved"]
pub struct Slot<'a, T> {
    sender: &'a WindowedSender<T>,
    credits: Credits,
}

// === impl WindowedSender ===

impl<T: Weigh> WindowedSender<T> {
    /// Sends when there is room.
    ///
    /// # Errors
    ///
    /// The message, when the receiver is closed or gone.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it resolves, nothing was sent, and the message is dropped with it. Where the message matters
    /// then, use [`send_ref`](Self::send_ref) or [`reserve`](Self::reserve).
    pub async fn send(&self, message: T) -> Result<(), SendError<T>> {
        let charge = Credits::charge(message.weight());
        match Acquire::of(&self.gate, charge).await {
            Ok(_) => self.push(message, charge).map_err(SendError),
            Err(Closed) => Err(SendError(message)),
        }
    }

    /// Sends when there is room, and leaves the message where it is until then. `None` is nothing to send.
    ///
    /// # Errors
    ///
    /// When the receiver is closed or gone; the message stays.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it resolves, nothing was sent, and the message is still there.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use tidegate::channel::{Single, Window, windowed};
    ///
    /// let (sender, _receiver) = windowed(Window::of_items(1));
    /// let mut message = Some(Single("first"));
    /// sender.send_ref(&mut message).await.expect("there is room");
    /// assert!(message.is_none());
    ///
    /// let mut message = Some(Single("second"));
    /// tokio::select! {
    ///     biased;
    ///     _ = sender.send_ref(&mut message) => unreachable!("there is no room"),
    ///     _ = std::future::ready(()) => {}
    /// }
    /// assert_eq!(message, Some(Single("second")));
    /// # }
    /// ```
    pub async fn send_ref(&self, message: &mut Option<T>) -> Result<(), Closed> {
        let Some(charge) = message.as_ref().map(|message| Credits::charge(message.weight())) else {
            return Ok(());
        };
        Acquire::of(&self.gate, charge).await?;
        *message = message.take().and_then(|message| self.push(message, charge).err());
        if message.is_none() { Ok(()) } else { Err(Closed) }
    }

    /// Sends at once, or not at all.
    ///
    /// # Errors
    ///
    /// The message, when there is no room for it, when others wait for room, or when the receiver is closed or
    /// gone.
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        let charge = Credits::charge(message.weight());
        match self.gate.try_take_any(charge) {
            Ok(()) => self.push(message, charge).map_err(TrySendError::Closed),
            Err(NotTaken::Full) => Err(TrySendError::Full(message)),
            Err(NotTaken::Closed) => Err(TrySendError::Closed(message)),
        }
    }

    /// Sends all, in order, as many at a time as there is room for. Many messages that fit cost hardly more than
    /// one. What is sent is removed from `messages`, which may come back with another buffer.
    ///
    /// # Errors
    ///
    /// When the receiver is closed or gone; what was not sent stays in `messages`.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it resolves, what was not sent is still in `messages`, in order.
    pub async fn send_batch(&self, messages: &mut Vec<T>) -> Result<(), Closed> {
        let mut batch = Batch::new(messages);
        while !batch.is_empty() {
            tokio::task::coop::consume_budget().await;
            let (count, taken) = match self.gate.try_take_some_of_all(|room| batch.choose(room)) {
                Ok(taken) => (batch.chosen(), taken),
                Err(NotTaken::Closed) => return Err(Closed),
                Err(NotTaken::Full) => {
                    let ask = batch.ask(self.gate.granted());
                    let taken = Acquire::new(&self.gate, ask).await?;
                    (if taken == ask.most { batch.chosen() } else { 1 }, taken)
                }
            };
            match self.inbox.0.push_block(batch.take(count, taken), &self.gate) {
                Ok(spare) => batch.exchange(spare, count),
                Err(block) => {
                    batch.put_back(block);
                    self.gate.give_back(taken);
                    return Err(Closed);
                }
            }
        }
        Ok(())
    }

    /// Takes room for a message that is still to come, when there is some.
    ///
    /// # Errors
    ///
    /// When the receiver is closed or gone.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it resolves, nothing is reserved.
    pub async fn reserve(&self, weight: Weight) -> Result<Slot<'_, T>, Closed> {
        let credits = Acquire::of(&self.gate, Credits::charge(weight)).await?;
        Ok(Slot::new(self, credits))
    }
}

impl<T> WindowedSender<T> {
    pub(super) fn new(inbox: Arc<Padded<Inbox<T>>>, gate: Arc<Gate>) -> Self {
        Self { inbox, gate }
    }

    /// Resolves when the receiver is closed or gone.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it resolves, nothing has happened.
    pub async fn closed(&self) {
        AwaitClose::new(&self.gate).await;
    }

    /// True if the receiver is closed or gone.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.gate.is_closed()
    }

    /// Resizes the channel and reads how full it is.
    #[must_use]
    pub fn gauge(&self) -> WindowGauge {
        WindowGauge::new(&self.gate)
    }

    pub(super) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Sends what was paid for. The message, if there is no receiver any more.
    pub(super) fn push(&self, message: T, charge: Credits) -> Result<(), T> {
        self.inbox.0.push(message, charge, &self.gate).inspect_err(|_| self.gate.give_back(charge))
    }
}

impl<T> Clone for WindowedSender<T> {
    fn clone(&self) -> Self {
        self.inbox.0.add_sender();
        Self { inbox: Arc::clone(&self.inbox), gate: Arc::clone(&self.gate) }
    }
}

impl<T> Drop for WindowedSender<T> {
    fn drop(&mut self) {
        self.inbox.0.drop_sender();
    }
}

impl<T> fmt::Debug for WindowedSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WindowedSender").field("gauge", &self.gauge()).finish_non_exhaustive()
    }
}

// === impl Slot ===

impl<'a, T> Slot<'a, T> {
    fn new(sender: &'a WindowedSender<T>, credits: Credits) -> Self {
        sender.gate().reserve(credits);
        Self { sender, credits }
    }
}

impl<T: Weigh> Slot<'_, T> {
    /// Sends without waiting, also when the channel was closed after this was reserved. What was reserved and is
    /// not needed returns.
    ///
    /// # Errors
    ///
    /// The message, when it weighs more than was reserved, or when the receiver is gone.
    pub fn send(mut self, message: T) -> Result<(), SlotError<T>> {
        let charge = Credits::charge(message.weight());
        if !charge.fits(self.credits) {
            return Err(SlotError::TooHeavy(message));
        }
        self.sender.gate().unreserve(charge);
        self.credits -= charge;
        self.sender.push(message, charge).map_err(SlotError::Closed)
    }
}

impl<T> Drop for Slot<'_, T> {
    fn drop(&mut self) {
        if !self.credits.is_none() {
            self.sender.gate().unreserve(self.credits);
            self.sender.gate().give_back(self.credits);
        }
    }
}

impl<T> fmt::Debug for Slot<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot")
            .field("items", &self.credits.items())
            .field("bytes", &self.credits.bytes())
            .finish_non_exhaustive()
    }
}
