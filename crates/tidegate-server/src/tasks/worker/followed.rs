use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidegate::MessageClass;
use tidegate::signal::{BackpressureLevel, Waiting};
use tidegate::task::ExecutionKey;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// Estimated size of one update in a batch, in bytes.
const UPDATE_BYTES: u64 = 512;

/// Executions that a manager follows, and the changes that it has not been told.
///
/// A change is a mark on its execution and not a message: the update is made from the execution when it is sent,
/// so it has everything up to then. Changes between two sends are merged by construction, and take no memory.
#[derive(Default)]
pub(super) struct Followed {
    inner: Mutex<Inner>,
    /// Wakes the flush loop.
    pub(super) changed: Notify,
}

#[derive(Default)]
struct Inner {
    executions: BTreeMap<ExecutionKey, Following>,
    /// Marked executions that wait for a flush, the longest waiting first.
    dirty: VecDeque<ExecutionKey>,
    /// Time since which the first of them waits.
    since: Option<Duration>,
    counts: FlushCounts,
}

struct Following {
    /// Offset of the output that the manager has.
    acked: u64,
    mark: Mark,
    /// Time of its last flush.
    queued: Duration,
    /// Its end has a queue of its own, and is in it or was sent by it.
    is_ending: bool,
    watcher: AbortHandle,
}

/// Position of an execution's newest change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    /// The manager has been sent everything.
    Clean,
    /// A change waits for a flush.
    Dirty,
    /// A change waits in the queue to the manager.
    Queued,
}

/// Counts of a worker's updates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlushCounts {
    /// Updates merged into one that waited.
    pub merged: u64,
    /// Updates that waited for a flush because of backpressure.
    pub delayed: u64,
    /// Updates dropped at REJECT, by class: control, dispatch, data, telemetry. A dropped update of an execution
    /// is part of the next probe, as far as a newer one did not replace it.
    pub dropped: [u64; 4],
}

// === impl Followed ===

impl Followed {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // No holder panics; if one did, each part would still be consistent.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows an execution from an offset of its output on. `watch` starts its watcher.
    ///
    /// True when the execution is followed already, and the manager lacks output that was acknowledged: its
    /// attempt has begun anew. Then the output has to be sent again from there.
    pub(super) fn follow(
        &self,
        key: &ExecutionKey,
        acked: u64,
        watch: impl FnOnce() -> AbortHandle,
    ) -> bool {
        let mut inner = self.lock();
        match inner.executions.get_mut(key) {
            Some(following) => {
                let lacks = acked < following.acked;
                following.acked = acked;
                following.is_ending &= !lacks;
                lacks
            }
            None => {
                let following = Following {
                    acked,
                    mark: Mark::Clean,
                    queued: Duration::ZERO,
                    is_ending: false,
                    watcher: watch(),
                };
                inner.executions.insert(key.clone(), following);
                false
            }
        }
    }

    /// Marks a change of an execution. True when it has to be queued now: its end does not wait for a flush.
    pub(super) fn mark(
        &self,
        key: &ExecutionKey,
        is_end: bool,
        level: BackpressureLevel,
        now: Duration,
    ) -> bool {
        let mut inner = self.lock();
        let Inner { executions, dirty, since, counts } = &mut *inner;
        let Some(following) = executions.get_mut(key) else { return false };
        following.is_ending |= is_end;
        match following.mark {
            Mark::Clean if is_end => {
                following.mark = Mark::Queued;
                return true;
            }
            Mark::Clean => {
                following.mark = Mark::Dirty;
                dirty.push_back(key.clone());
                since.get_or_insert(now);
                if level > BackpressureLevel::None {
                    counts.delayed += 1;
                }
            }
            Mark::Dirty if is_end => {
                following.mark = Mark::Queued;
                dirty.retain(|other| other != key);
                return true;
            }
            Mark::Dirty if level == BackpressureLevel::Reject => {
                counts.dropped[MessageClass::Data.index()] += 1;
            }
            Mark::Dirty => counts.merged += 1,
            // An end must not wait behind the queue's data, where it could also be displaced.
            Mark::Queued if is_end => return true,
            Mark::Queued => counts.merged += 1,
        }
        drop(inner);
        self.changed.notify_one();
        false
    }

    /// Changes that wait for a flush.
    pub(super) fn waiting(&self) -> Waiting {
        let inner = self.lock();
        let updates = inner.dirty.len() as u64;
        Waiting {
            class: MessageClass::Data,
            updates,
            bytes: updates * UPDATE_BYTES,
            since: inner.since.unwrap_or_default(),
        }
    }

    /// Takes up to `max` executions whose changes are to be queued.
    pub(super) fn take(&self, max: u64, now: Duration) -> Vec<ExecutionKey> {
        let mut inner = self.lock();
        let Inner { executions, dirty, since, .. } = &mut *inner;
        let count = usize::try_from(max).unwrap_or(usize::MAX).min(dirty.len());
        let keys: Vec<_> = dirty.drain(..count).collect();
        *since = (!dirty.is_empty()).then_some(now);
        for key in &keys {
            if let Some(following) = executions.get_mut(key) {
                following.mark = Mark::Queued;
                following.queued = now;
            }
        }
        keys
    }

    /// Time at which a flush has queued the change of an execution that waits in the queue.
    pub(super) fn queued_at(&self, key: &ExecutionKey) -> Option<Duration> {
        let inner = self.lock();
        let following = inner.executions.get(key)?;
        (following.mark == Mark::Queued).then_some(following.queued)
    }

    /// True when the update of an execution is left to the queue of ends.
    pub(super) fn is_ending(&self, key: &ExecutionKey) -> bool {
        self.lock().executions.get(key).is_some_and(|following| following.is_ending)
    }

    /// Takes an update back that could not be queued or sent: a flush sends it, with the end if it had that.
    pub(super) fn take_back(&self, key: &ExecutionKey, level: BackpressureLevel, now: Duration) {
        if let Some(following) = self.lock().executions.get_mut(key) {
            following.is_ending = false;
            if following.mark == Mark::Queued {
                following.mark = Mark::Clean;
            }
        }
        self.mark(key, false, level, now);
    }

    /// Begins to send an execution: later changes need another send. Returns the offset of the output that the
    /// manager has; `None` when the execution is not followed any more.
    pub(super) fn begin_send(&self, key: &ExecutionKey) -> Option<u64> {
        let mut inner = self.lock();
        let following = inner.executions.get_mut(key)?;
        if following.mark == Mark::Queued {
            following.mark = Mark::Clean;
        }
        Some(following.acked)
    }

    /// The manager has received an execution's output from one offset to another. What it lacks before them stays
    /// to be sent.
    pub(super) fn acked(&self, key: &ExecutionKey, after: u64, next: u64) {
        if let Some(following) = self.lock().executions.get_mut(key)
            && after <= following.acked
        {
            following.acked = following.acked.max(next);
        }
    }

    /// Stops following an execution.
    pub(super) fn forget(&self, key: &ExecutionKey) {
        let mut inner = self.lock();
        if let Some(following) = inner.executions.remove(key) {
            following.watcher.abort();
            if following.mark == Mark::Dirty {
                inner.dirty.retain(|other| other != key);
            }
        }
    }

    /// Stops following all executions: the session has ended, and the next begins with the manager's interests.
    pub(super) fn clear(&self) {
        let mut inner = self.lock();
        inner.executions.values().for_each(|following| following.watcher.abort());
        inner.executions.clear();
        inner.dirty.clear();
        inner.since = None;
    }

    /// Executions that are followed.
    pub(super) fn len(&self) -> usize {
        self.lock().executions.len()
    }

    /// Counts an update of a class as dropped.
    pub(super) fn count_dropped(&self, class: MessageClass) {
        self.lock().counts.dropped[class.index()] += 1;
    }

    /// Counts since the start.
    pub(super) fn counts(&self) -> FlushCounts {
        self.lock().counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use BackpressureLevel::{None as Clear, Reject, Throttle};

    fn key(name: &str) -> ExecutionKey {
        name.parse().unwrap()
    }

    async fn followed(keys: &[&str]) -> Followed {
        let followed = Followed::default();
        for name in keys {
            followed.follow(&key(name), 0, || tokio::spawn(async {}).abort_handle());
        }
        followed
    }

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[tokio::test]
    async fn changes_of_one_execution_are_one_update() {
        let followed = followed(&["a@1", "b@1"]).await;
        for _ in 0..5 {
            assert!(!followed.mark(&key("a@1"), false, Clear, at(1)));
        }
        assert!(!followed.mark(&key("b@1"), false, Throttle, at(2)));
        let waiting = followed.waiting();
        assert_eq!((waiting.updates, waiting.since), (2, at(1)));
        assert_eq!(followed.take(1, at(3)), [key("a@1")]);
        assert_eq!((followed.waiting().updates, followed.waiting().since), (1, at(3)));
        let counts = followed.counts();
        assert_eq!((counts.merged, counts.delayed), (4, 1));
    }

    #[tokio::test]
    async fn a_change_during_a_send_needs_another_send() {
        let followed = followed(&["a@1"]).await;
        followed.mark(&key("a@1"), false, Clear, at(1));
        followed.take(9, at(1));
        followed.mark(&key("a@1"), false, Clear, at(2));
        assert_eq!(followed.waiting().updates, 0, "the queued update will have it");
        assert_eq!(followed.begin_send(&key("a@1")), Some(0));
        followed.mark(&key("a@1"), false, Clear, at(3));
        assert_eq!(followed.waiting().updates, 1);
        followed.acked(&key("a@1"), 0, 7);
        followed.acked(&key("a@1"), 0, 5);
        assert_eq!(followed.begin_send(&key("a@1")), Some(7), "an older ack takes nothing back");
    }

    #[tokio::test]
    async fn output_that_the_manager_lacks_is_sent_again() {
        let followed = followed(&["a@1"]).await;
        let follow =
            |acked| followed.follow(&key("a@1"), acked, || unreachable!("it has a watcher"));
        followed.acked(&key("a@1"), 0, 7);
        assert!(!follow(9), "it has more than was acknowledged to this side");
        assert!(follow(3));
        followed.acked(&key("a@1"), 9, 12);
        assert_eq!(followed.begin_send(&key("a@1")), Some(3), "an ack beyond a gap closes none");
        followed.acked(&key("a@1"), 3, 12);
        assert_eq!(followed.begin_send(&key("a@1")), Some(12));
    }

    #[tokio::test]
    async fn ends_are_queued_at_once_at_every_level() {
        for level in BackpressureLevel::ALL {
            let followed = followed(&["a@1", "b@1", "c@1"]).await;
            followed.mark(&key("b@1"), false, level, at(1));
            assert!(followed.mark(&key("a@1"), true, level, at(1)), "{level}");
            assert!(followed.mark(&key("b@1"), true, level, at(1)), "{level}");
            followed.mark(&key("c@1"), false, level, at(1));
            followed.take(9, at(1));
            assert!(followed.mark(&key("c@1"), true, level, at(1)), "{level}");
            assert_eq!(followed.waiting().updates, 0, "{level}");
        }
    }

    /// Its newest state, with the end, would be sent by both queues.
    #[tokio::test]
    async fn an_end_is_left_to_its_queue_until_that_gives_it_back() {
        let followed = followed(&["a@1"]).await;
        followed.mark(&key("a@1"), false, Clear, at(1));
        followed.take(9, at(2));
        assert_eq!(followed.queued_at(&key("a@1")), Some(at(2)));
        assert!(!followed.is_ending(&key("a@1")));
        assert!(followed.mark(&key("a@1"), true, Clear, at(3)));
        assert!(followed.is_ending(&key("a@1")));
        followed.take_back(&key("a@1"), Clear, at(4));
        assert!(!followed.is_ending(&key("a@1")), "a flush sends it now");
        assert_eq!((followed.waiting().updates, followed.queued_at(&key("a@1"))), (1, None));
    }

    #[tokio::test]
    async fn at_reject_changes_that_wait_for_the_probe_are_counted_as_dropped() {
        let followed = followed(&["a@1"]).await;
        for _ in 0..3 {
            followed.mark(&key("a@1"), false, Reject, at(1));
        }
        assert_eq!(followed.counts().dropped, [0, 0, 2, 0]);
        assert_eq!(followed.waiting().updates, 1, "the probe has the newest");
    }

    #[tokio::test]
    async fn what_is_forgotten_is_neither_marked_nor_sent() {
        let followed = followed(&["a@1", "b@1"]).await;
        followed.mark(&key("a@1"), false, Clear, at(1));
        followed.forget(&key("a@1"));
        assert_eq!((followed.waiting().updates, followed.len()), (0, 1));
        assert!(!followed.mark(&key("a@1"), true, Clear, at(1)));
        assert_eq!(followed.begin_send(&key("a@1")), None);
        followed.clear();
        assert_eq!(followed.len(), 0);
    }
}
