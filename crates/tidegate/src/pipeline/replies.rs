use super::measure::signal_cell::SignalCell;
use bytes::Bytes;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tidegate_core::frame::{Ack, Reject, SeqRanges, Welcome};
use tidegate_core::sequence::SEQ_WINDOW;
use tokio::sync::Notify;

/// Acks that may wait for a peer that does not read. A sender has at most [`SEQ_WINDOW`] batches under way; one
/// that settles them itself and reads nothing is not owed more than this.
const ACKS_MAX: usize = 4 * SEQ_WINDOW as usize;

/// Refusals that may wait for a peer that does not read.
const REJECTS_MAX: usize = 4_096;

/// Replies queued for a connection. Acks are merged while they are queued, so a slow reader gets few large frames
/// instead of many small ones.
#[derive(Debug)]
pub(crate) struct Replies {
    pending: Mutex<Pending>,
    news: Notify,
    signal: SignalCell,
}

#[derive(Debug, Default)]
struct Pending {
    welcome: Option<Welcome>,
    rejects: Vec<Reject>,
    acked: Vec<u64>,
    is_greeted: bool,
    closed: bool,
}

/// More answers wait than a peer can be owed: it does not read them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unread;

// === impl Replies ===

impl Replies {
    pub(crate) fn new(signal: SignalCell) -> Self {
        Self { pending: Mutex::default(), news: Notify::new(), signal }
    }

    /// The next bytes to write, all answers that wait; `None` when there will be no more.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost: answers are taken only when this is about to give them.
    pub(crate) async fn next(&self) -> Option<Bytes> {
        loop {
            let news = self.news.notified();
            {
                let mut pending = self.lock();
                if let Some(bytes) = pending.encode(&self.signal) {
                    return Some(bytes);
                }
                if pending.closed {
                    return None;
                }
            }
            news.await;
        }
    }

    /// A heartbeat with the current signal; `None` before the peer was greeted, which does not expect one.
    pub(crate) fn beat(&self) -> Option<Bytes> {
        let (seqs, signal) = (SeqRanges::default(), self.signal.get());
        self.lock().is_greeted.then(|| Ack { seqs, signal }.encode())
    }

    pub(crate) fn welcome(&self, welcome: Welcome) {
        {
            let mut pending = self.lock();
            pending.welcome = Some(welcome);
            pending.is_greeted = true;
        }
        self.news.notify_one();
    }

    pub(crate) fn ack(&self, seqs: &[u64]) -> Result<(), Unread> {
        let mut pending = self.lock();
        if pending.acked.len() + seqs.len() > ACKS_MAX {
            // The same number many times is the same answer.
            pending.acked.sort_unstable();
            pending.acked.dedup();
        }
        if pending.acked.len() + seqs.len() > ACKS_MAX {
            return Err(Unread);
        }
        pending.acked.extend_from_slice(seqs);
        drop(pending);
        self.news.notify_one();
        Ok(())
    }

    pub(crate) fn reject(&self, reject: Reject) -> Result<(), Unread> {
        let mut pending = self.lock();
        if pending.rejects.len() >= REJECTS_MAX {
            return Err(Unread);
        }
        pending.rejects.push(reject);
        drop(pending);
        self.news.notify_one();
        Ok(())
    }

    /// There will be no more answers after those that wait.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.news.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Pending ===

impl Pending {
    fn encode(&mut self, signal: &SignalCell) -> Option<Bytes> {
        if self.welcome.is_none() && self.rejects.is_empty() && self.acked.is_empty() {
            return None;
        }
        let mut out = Vec::new();
        if let Some(welcome) = self.welcome.take() {
            welcome.encode_into(&mut out);
        }
        for reject in self.rejects.drain(..) {
            reject.encode_into(&mut out);
        }
        if !self.acked.is_empty() {
            Ack::encode_all(&mut self.acked, signal.get(), &mut out);
            self.acked.clear();
        }
        Some(out.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::frame::{FrameLimits, Reassembler};
    use tidegate_core::signal::{LevelConfig, LevelGauge};

    fn replies() -> Replies {
        let gauge = LevelGauge::new(LevelConfig::default()).unwrap();
        Replies::new(SignalCell::new(gauge.signal()))
    }

    #[tokio::test]
    async fn acks_that_wait_are_one_frame_and_the_end_comes_after_them() {
        let replies = replies();
        replies.ack(&[3, 1]).unwrap();
        replies.ack(&[2]).unwrap();
        replies.close();
        let mut reassembler = Reassembler::new(FrameLimits::default());
        reassembler.push(replies.next().await.unwrap());
        let ack = Ack::decode(&reassembler.next().unwrap().unwrap()).unwrap();
        assert_eq!(ack.seqs.ranges(), [1..=3]);
        assert_eq!(reassembler.next(), Ok(None));
        assert_eq!(replies.next().await, None);
    }

    #[test]
    fn a_peer_that_reads_nothing_is_owed_a_bounded_amount() {
        let replies = replies();
        let all: Vec<u64> = (1..=ACKS_MAX as u64).collect();
        replies.ack(&all).unwrap();
        assert_eq!(replies.ack(&[1]), Err(Unread));
        let repeats = self::replies();
        for _ in 0..10 * ACKS_MAX {
            repeats.ack(&[7]).unwrap();
        }
        assert!(repeats.lock().acked.len() <= ACKS_MAX);
    }
}
