use super::measure::signal_cell::SignalCell;
use super::replies::{Replies, Unread};
use bytes::Bytes;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tidegate_core::frame::{Reject, Welcome};
use tokio::sync::Notify;
use tokio::time::timeout;

/// Interval of heartbeats to a sender that waits for acks: shorter than the ttl of a signal.
const BEAT: Duration = Duration::from_secs(2);

/// Protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Frames with acks.
    Frames,
    /// Lines of Influx line protocol, which are not answered.
    Lines,
}

/// One connection of a sender, as the stages know it.
#[derive(Debug)]
pub struct Connection {
    id: u64,
    peer: SocketAddr,
    protocol: Protocol,
    sender: OnceLock<Arc<str>>,
    replies: Replies,
    /// Frames that came and are not answered yet, and reads that were not cut into frames yet.
    unanswered: AtomicU64,
    /// Its end came by itself, not by its peer's will.
    broken_off: AtomicBool,
    /// Nothing more comes from it, and all that came has been cut into frames.
    ended: AtomicBool,
    cut: AtomicBool,
    cut_notice: Notify,
}

// === impl Protocol ===

impl Protocol {
    /// The name used in labels, answers and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Frames => "frames",
            Self::Lines => "lines",
        }
    }
}

// === impl Connection ===

impl Connection {
    pub(crate) fn new(id: u64, peer: SocketAddr, protocol: Protocol, signal: SignalCell) -> Self {
        Self {
            id,
            peer,
            protocol,
            sender: OnceLock::new(),
            replies: Replies::new(signal),
            unanswered: AtomicU64::new(0),
            broken_off: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            cut: AtomicBool::new(false),
            cut_notice: Notify::new(),
        }
    }

    /// Unique number of the connection.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Address of the peer.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Its protocol.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Name of the sender, once its hello has arrived.
    #[must_use]
    pub fn sender(&self) -> Option<&Arc<str>> {
        self.sender.get()
    }

    /// Sets the sender's name. Returns false if it is set already: each hello costs a read of the store.
    pub(crate) fn set_sender(&self, sender: Arc<str>) -> bool {
        self.sender.set(sender).is_ok()
    }

    /// The next bytes to write to it; `None` when there will be no more. While its peer waits for acks it is told
    /// the signal every two seconds: so it knows that it is not forgotten, and why it waits.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost: answers are taken only when this is about to give them.
    pub async fn next_reply(&self) -> Option<Bytes> {
        loop {
            match timeout(BEAT, self.replies.next()).await {
                Ok(reply) => return reply,
                Err(_elapsed) if self.unanswered() == 0 => {}
                Err(_elapsed) => {
                    if let Some(beat) = self.replies.beat() {
                        return Some(beat);
                    }
                }
            }
        }
    }

    /// Frames that came and are not answered yet, and reads of which nobody knows yet whether they hold some.
    #[must_use]
    pub fn unanswered(&self) -> u64 {
        self.unanswered.load(Ordering::Acquire)
    }

    /// Counts a frame or read that must be answered.
    pub(crate) fn expect_answer(&self) {
        self.unanswered.fetch_add(1, Ordering::AcqRel);
    }

    /// Counts a read as processed.
    pub(crate) fn answered(&self) {
        self.sent(Ok(()), 1);
    }

    /// Acknowledges durable batches.
    pub(crate) fn ack(&self, seqs: &[u64]) {
        self.sent(self.replies.ack(seqs), seqs.len() as u64);
    }

    /// Rejects a batch.
    pub(crate) fn reject(&self, reject: Reject) {
        self.sent(self.replies.reject(reject), 1);
    }

    /// Rejects something that is not counted as unanswered.
    pub(crate) fn complain(&self, reject: Reject) {
        self.sent(self.replies.reject(reject), 0);
    }

    /// Answers its hello.
    pub(crate) fn welcome(&self, welcome: Welcome) {
        self.replies.welcome(welcome);
        self.sent(Ok(()), 1);
    }

    fn sent(&self, queued: Result<(), Unread>, answered: u64) {
        if queued.is_err() && !self.is_cut() {
            tracing::warn!(peer = %self.peer, "cut a sender that does not read its answers");
            self.cut();
        }
        self.unanswered.fetch_sub(answered, Ordering::AcqRel);
        self.close_when_done();
    }

    /// Nothing more comes from it, and all that came has been cut into frames.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.close_when_done();
    }

    /// Its end, which is yet to be told to the pipeline, is not one that its peer chose: a line that has begun is
    /// not known to be whole, and is not taken.
    pub fn break_off(&self) {
        self.broken_off.store(true, Ordering::Release);
    }

    pub(crate) fn is_broken_off(&self) -> bool {
        self.broken_off.load(Ordering::Acquire)
    }

    /// Ends it now: nothing more of it is read, and what waits is written if its peer takes it.
    pub fn cut(&self) {
        self.cut.store(true, Ordering::Release);
        self.cut_notice.notify_waiters();
        self.replies.close();
    }

    /// True if the connection was cut.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Acquire)
    }

    /// Waits until it is cut.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost.
    pub async fn until_cut(&self) {
        let notice = self.cut_notice.notified();
        if !self.is_cut() {
            notice.await;
        }
    }

    fn close_when_done(&self) {
        if self.ended.load(Ordering::Acquire) && self.unanswered() == 0 {
            self.replies.close();
        }
    }
}
