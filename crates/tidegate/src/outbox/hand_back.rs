use super::envelope::Envelope;
use super::error::{Cause, SendError};
use super::transport::Transport;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use tidegate_core::admission::MessageClass;
use tokio::sync::mpsc;

/// A message that nobody waited for and that was not delivered.
pub struct Failed<T: Transport> {
    /// Where it should have gone.
    pub destination: T::Destination,
    /// The class with which it was enqueued.
    pub class: MessageClass,
    /// The message itself, and what ended it.
    pub error: SendError<T::Message, T::Error>,
}

/// Where messages come back that nobody waited for.
///
/// It holds as many as [`OutgoingConfig::hand_back_size`](super::OutgoingConfig::hand_back_size) says. What
/// comes while it is full, or after it was dropped, is counted in
/// [`ManagerTotals::hand_back_lost`](super::ManagerTotals::hand_back_lost): that count is zero in a program
/// that reads it.
pub struct HandBack<T: Transport> {
    receiver: mpsc::Receiver<Failed<T>>,
}

/// The manager's end of it.
pub(super) struct HandBackSender<T: Transport> {
    sender: mpsc::Sender<Failed<T>>,
    handed_back: AtomicU64,
    lost: AtomicU64,
}

// === impl Failed ===

impl<T: Transport> fmt::Debug for Failed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failed")
            .field("destination", &self.destination)
            .field("class", &self.class)
            .field("error", &self.error)
            .finish()
    }
}

// === impl HandBack ===

impl<T: Transport> HandBack<T> {
    /// The next message that came back; `None` when the manager and all its senders have ended.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn recv(&mut self) -> Option<Failed<T>> {
        self.receiver.recv().await
    }

    /// The next message, if one is there.
    pub fn try_recv(&mut self) -> Option<Failed<T>> {
        self.receiver.try_recv().ok()
    }

    /// The same for those who poll.
    pub fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<Failed<T>>> {
        self.receiver.poll_recv(context)
    }
}

impl<T: Transport> fmt::Debug for HandBack<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandBack").field("waiting", &self.receiver.len()).finish()
    }
}

// === impl HandBackSender ===

impl<T: Transport> HandBackSender<T> {
    pub(super) fn new(size: usize) -> (Self, HandBack<T>) {
        let (sender, receiver) = mpsc::channel(size);
        let ours = Self { sender, handed_back: AtomicU64::new(0), lost: AtomicU64::new(0) };
        (ours, HandBack { receiver })
    }

    /// Gives a message that ended to whoever waits for it, or else hands it back.
    pub(super) fn give_up(
        &self,
        destination: &T::Destination,
        envelope: Envelope<T>,
        cause: Cause<T::Error>,
    ) {
        if let Some(failed) = envelope.fail(destination, cause) {
            self.hand_back(failed);
        }
    }

    pub(super) fn hand_back(&self, failed: Failed<T>) {
        let count = match self.sender.try_send(failed) {
            Ok(()) => &self.handed_back,
            Err(_) => &self.lost,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn handed_back(&self) -> u64 {
        self.handed_back.load(Ordering::Relaxed)
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}
