use super::Decision;
use arc_swap::ArcSwap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::mpsc;

/// The most recordings at once. Each gets every decision: more would be a load of their own.
pub const RECORDERS_MAX: usize = 4;

/// Decisions that a recording may be behind: over a second at full rate, and about 5 MB.
const BUFFER: usize = 64 * 1024;

/// Publishes decisions to the active recordings.
#[derive(Debug, Default)]
pub struct DecisionLog {
    /// True if any recording is active. The only thing that a request reads when none is.
    is_on: AtomicBool,
    subscribers: ArcSwap<Vec<Arc<Subscriber>>>,
    next_id: AtomicU64,
}

/// The sending end of a recording's buffer.
#[derive(Debug)]
struct Subscriber {
    id: u64,
    decisions: mpsc::Sender<Decision>,
    lost: Arc<AtomicU64>,
}

/// The receiving end of a recording's buffer. Dropping it ends the recording.
#[derive(Debug)]
pub(super) struct Subscription {
    id: u64,
    decision_log: Arc<DecisionLog>,
    /// Decisions that were published and not yet taken.
    pub(super) decisions: mpsc::Receiver<Decision>,
    /// Decisions that found no room.
    pub(super) lost: Arc<AtomicU64>,
}

/// The most recordings are already active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooManyRecorders;

// === impl DecisionLog ===

impl DecisionLog {
    /// Returns `true` if any recording is active.
    #[inline]
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Publishes a decision to all recordings. Never waits: a recording without room loses it.
    pub fn publish(&self, decision: &Decision) {
        for subscriber in self.subscribers.load().iter() {
            if subscriber.decisions.try_send(decision.clone()).is_err() {
                subscriber.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Begins a recording.
    pub(super) fn subscribe(self: &Arc<Self>) -> Result<Subscription, TooManyRecorders> {
        let (sender, decisions) = mpsc::channel(BUFFER);
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let lost = Arc::new(AtomicU64::new(0));
        let subscriber = Arc::new(Subscriber { id, decisions: sender, lost: Arc::clone(&lost) });
        let before = self.subscribers.rcu(|subscribers| {
            let mut subscribers = subscribers.to_vec();
            if subscribers.len() < RECORDERS_MAX {
                subscribers.push(Arc::clone(&subscriber));
            }
            subscribers
        });
        if before.len() >= RECORDERS_MAX {
            return Err(TooManyRecorders);
        }
        self.is_on.store(true, Ordering::Relaxed);
        Ok(Subscription { id, decision_log: Arc::clone(self), decisions, lost })
    }

    /// Ends a recording. Decisions that were published before can still be taken.
    pub(super) fn retire(&self, id: u64) {
        self.subscribers.rcu(|subscribers| {
            subscribers.iter().filter(|subscriber| subscriber.id != id).cloned().collect::<Vec<_>>()
        });
        self.is_on.store(!self.subscribers.load().is_empty(), Ordering::Relaxed);
        // A recording that began between the two statements was switched off by the second: check again.
        if !self.subscribers.load().is_empty() {
            self.is_on.store(true, Ordering::Relaxed);
        }
    }
}

// === impl Subscription ===

impl Subscription {
    pub(super) fn id(&self) -> u64 {
        self.id
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.decision_log.retire(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::decision_log::Verdict;
    use std::time::Instant;
    use tidegate::MessagePriority;

    fn decision() -> Decision {
        Decision {
            decided: Instant::now(),
            took: None,
            priority: MessagePriority::Low,
            verdict: Verdict::Admitted,
            client: None,
        }
    }

    #[test]
    fn it_is_on_while_a_recording_is_active() {
        let decision_log = Arc::new(DecisionLog::default());
        assert!(!decision_log.is_on());
        let (first, second) =
            (decision_log.subscribe().unwrap(), decision_log.subscribe().unwrap());
        drop(first);
        assert!(decision_log.is_on());
        drop(second);
        assert!(!decision_log.is_on());
    }

    #[test]
    fn recordings_are_bounded_and_a_slot_returns() {
        let decision_log = Arc::new(DecisionLog::default());
        let mut subscribers: Vec<_> =
            (0..RECORDERS_MAX).map(|_| decision_log.subscribe().unwrap()).collect();
        assert_eq!(decision_log.subscribe().unwrap_err(), TooManyRecorders);
        subscribers.pop();
        assert!(decision_log.subscribe().is_ok());
    }

    #[test]
    fn decisions_without_room_are_counted_and_block_no_other_recording() {
        let decision_log = Arc::new(DecisionLog::default());
        let (mut slow, mut fast) =
            (decision_log.subscribe().unwrap(), decision_log.subscribe().unwrap());
        for _ in 0..BUFFER + 10 {
            decision_log.publish(&decision());
            assert!(fast.decisions.try_recv().is_ok());
        }
        assert_eq!(slow.lost.load(Ordering::Relaxed), 10);
        assert_eq!(fast.lost.load(Ordering::Relaxed), 0);
        let mut taken = 0;
        while slow.decisions.try_recv().is_ok() {
            taken += 1;
        }
        assert_eq!(taken, BUFFER);
    }

    #[test]
    fn a_retired_recording_takes_what_was_published_and_sees_the_end() {
        let decision_log = Arc::new(DecisionLog::default());
        let mut subscription = decision_log.subscribe().unwrap();
        decision_log.publish(&decision());
        decision_log.retire(subscription.id());
        decision_log.publish(&decision());
        assert!(subscription.decisions.try_recv().is_ok());
        assert_eq!(
            subscription.decisions.try_recv().unwrap_err(),
            mpsc::error::TryRecvError::Disconnected
        );
    }
}
