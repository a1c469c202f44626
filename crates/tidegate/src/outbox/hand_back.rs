use super::envelope::{Envelope, FailedMessage};
use super::error::SendFailure;
use super::transport::Transport;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// Receives undelivered messages that no caller waited for.
///
/// Capacity: [`OutgoingConfig::hand_back_size`](super::OutgoingConfig::hand_back_size). A message that finds it
/// full, or dropped, is counted in
/// [`ManagerTotals::hand_back_lost`](super::ManagerTotals::hand_back_lost): that count is zero in a program
/// that reads it.
pub struct HandBack<T: Transport> {
    receiver: mpsc::Receiver<FailedMessage<T>>,
}

/// Sending end, owned by the manager.
pub(super) struct HandBackSender<T: Transport> {
    sender: mpsc::Sender<FailedMessage<T>>,
    handed_back: AtomicU64,
    lost: AtomicU64,
}

// === impl HandBack ===

impl<T: Transport> HandBack<T> {
    /// The next message that came back; `None` when the manager and all its senders have ended.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn recv(&mut self) -> Option<FailedMessage<T>> {
        self.receiver.recv().await
    }

    /// The next message, if one is there.
    pub fn try_recv(&mut self) -> Option<FailedMessage<T>> {
        self.receiver.try_recv().ok()
    }

    /// The same for those who poll.
    pub fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<FailedMessage<T>>> {
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
        let sender = Self { sender, handed_back: AtomicU64::new(0), lost: AtomicU64::new(0) };
        (sender, HandBack { receiver })
    }

    /// Gives a message that ended to whoever waits for it, or else hands it back.
    pub(super) fn give_up(
        &self,
        destination: &T::Destination,
        envelope: Envelope<T>,
        cause: SendFailure<T::Error>,
    ) {
        if let Some(failed) = envelope.fail(destination, cause) {
            self.hand_back(failed);
        }
    }

    pub(super) fn hand_back(&self, failed: FailedMessage<T>) {
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
