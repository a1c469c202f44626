use super::access::{AccessError, SenderClient, SenderIdentity};
use super::measure::signal_cell::SignalCell;
use super::protocol::Protocol;
use super::replies::{Replies, Unread};
use super::shares::{Share, Shares};
use crate::store::CLIENT_SOURCE;
use bytes::Bytes;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tidegate_core::frame::{Reject, Welcome};
use tidegate_core::sequence::{SEQ_RESTART_MAX, SEQ_WINDOW};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

/// Interval of heartbeats to a sender that waits for acks: shorter than the ttl of a signal.
const BEAT: Duration = Duration::from_secs(2);

/// Shortest and longest time for which a sender waits that sends what is refused at a cost. To find out that its
/// series are too many costs more than to send them.
const HOLD_MIN: Duration = Duration::from_secs(1);
const HOLD_MAX: Duration = Duration::from_secs(32);

/// One connection of a sender, as the stages know it.
#[derive(Debug)]
pub struct Connection {
    id: u64,
    peer: SocketAddr,
    protocol: Protocol,
    sender: OnceLock<Arc<str>>,
    /// The client that its certificate names.
    certified: Result<Option<Arc<SenderClient>>, AccessError>,
    /// Known from its hello or its first line on.
    identity: OnceLock<SenderIdentity>,
    replies: Replies,
    /// Frames that came and are not answered yet, and reads that were not cut into frames yet.
    unanswered: AtomicU64,
    /// Its end came by itself, not by its peer's will.
    broken_off: AtomicBool,
    /// Nothing more comes from it, and all that came has been cut into frames.
    ended: AtomicBool,
    /// The highest number of a batch that came over it; 0 before the first.
    reach: AtomicU64,
    /// A batch of it was taken: its sender can't begin anew.
    has_begun: AtomicBool,
    source: OnceLock<Arc<str>>,
    shares: Arc<Shares>,
    share: Arc<Share>,
    client_share: OnceLock<Arc<Share>>,
    /// Nothing more is read from it for a while.
    held: Mutex<Held>,
    /// True once it was held. Nearly no connection is, and then this is all that is read.
    is_held: AtomicBool,
    cut: AtomicBool,
    cut_notice: Notify,
}

/// The time for which a sender has to wait.
#[derive(Debug, Default)]
struct Held {
    until: Option<Instant>,
    /// The last wait.
    wait: Duration,
}

// === impl Connection ===

impl Connection {
    pub(crate) fn new(
        id: u64,
        peer: SocketAddr,
        protocol: Protocol,
        certified: Result<Option<Arc<SenderClient>>, AccessError>,
        (signal, shares): (SignalCell, Arc<Shares>),
    ) -> Self {
        Self {
            id,
            peer,
            protocol,
            sender: OnceLock::new(),
            certified,
            identity: OnceLock::new(),
            replies: Replies::new(signal),
            unanswered: AtomicU64::new(0),
            broken_off: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            reach: AtomicU64::new(0),
            has_begun: AtomicBool::new(false),
            source: OnceLock::new(),
            share: shares.add(),
            shares,
            client_share: OnceLock::new(),
            held: Mutex::default(),
            is_held: AtomicBool::new(false),
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

    /// Identity of the sender, once it has shown its token or was let in without one.
    #[must_use]
    pub fn identity(&self) -> Option<&SenderIdentity> {
        self.identity.get()
    }

    /// The client that its certificate names, if any.
    pub(crate) fn certified(&self) -> Result<Option<&Arc<SenderClient>>, AccessError> {
        self.certified.as_ref().map(Option::as_ref).map_err(|error| *error)
    }

    /// Sets the identity; the first one stays.
    pub(crate) fn set_identity(&self, identity: SenderIdentity) {
        if let SenderIdentity::Client(client) = &identity {
            let _ = self.client_share.set(self.shares.of_client(&client.name));
        }
        let _ = self.identity.set(identity);
    }

    /// The share of the pipeline that its bytes count to: that of its client, if it has shown a token.
    pub(crate) fn share(&self) -> &Arc<Share> {
        self.client_share.get().unwrap_or(&self.share)
    }

    /// The owner of the sender's name, as this connection shows it.
    pub(crate) fn owner(&self) -> Option<Arc<str>> {
        self.identity().and_then(SenderIdentity::owner)
    }

    /// The client or the sender to whom new series are counted: all lines without a token are one.
    pub(crate) fn source(&self) -> Arc<str> {
        let source = || match (self.identity(), self.sender()) {
            (Some(SenderIdentity::Client(client)), _) => {
                format!("{CLIENT_SOURCE}{}", client.name).into()
            }
            (_, Some(sender)) => format!("sender/{sender}").into(),
            (_, None) => Arc::from("lines"),
        };
        Arc::clone(self.source.get_or_init(source))
    }

    /// Counts series that a batch of it began.
    pub(crate) fn began(&self, series: u64) {
        self.shares.began(self.share(), series);
    }

    /// Lets a sender wait that sends what is refused at a cost: 1 s, and longer each time that it goes on.
    pub(crate) fn hold(&self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        // What came before it was told does not count against it.
        if held.until.is_some_and(|until| until > Instant::now()) {
            return;
        }
        // One that behaved for a while begins anew. Lines that are not refused are taken: they wait no longer
        // than they must.
        let is_new = held.until.is_none_or(|until| until.elapsed() > 2 * HOLD_MAX);
        held.wait = match self.protocol {
            Protocol::Frames if !is_new => (held.wait * 2).min(HOLD_MAX),
            _ => HOLD_MIN,
        };
        held.until = Some(Instant::now() + held.wait);
        self.is_held.store(true, Ordering::Release);
    }

    /// Remaining time for which its sender has to wait, if it does.
    pub(crate) fn held_for(&self) -> Option<Duration> {
        if !self.is_held.load(Ordering::Acquire) {
            return None;
        }
        let until = self.held.lock().unwrap_or_else(PoisonError::into_inner).until?;
        let left = until.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// Waits until more may be read from it. Usually it may at once.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost.
    pub async fn until_released(&self) {
        while let Some(left) = self.held_for() {
            sleep(left).await;
        }
    }

    /// The greatest number that the next batch may settle, where all up to `low` is settled.
    ///
    /// Each number was sent over this connection or is settled already, and at most [`SEQ_WINDOW`] of those
    /// before are unanswered. Only the first batch that is taken may begin anew.
    pub(crate) fn settles_max(&self, low: u64) -> u64 {
        let reach = self.reach.load(Ordering::Relaxed);
        let next = low.max(reach).saturating_add(SEQ_WINDOW);
        let has_begun = self.has_begun.load(Ordering::Relaxed);
        if has_begun { next } else { next.max(SEQ_RESTART_MAX) }
    }

    /// Notes the number of a batch that came, also of one that is rejected: its sender settles it later. A number
    /// that skips more than a sender can have under way is none.
    pub(crate) fn reached(&self, seq: u64, low: u64) {
        if seq <= self.settles_max(low) {
            self.reach.fetch_max(seq, Ordering::Relaxed);
        }
    }

    /// Notes the number of a batch that was taken, where all up to `low` is settled.
    pub(crate) fn took(&self, seq: u64, low: u64) {
        self.reached(seq, low);
        self.has_begun.store(true, Ordering::Relaxed);
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
