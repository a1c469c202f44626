//! Implementation: where the receiver sleeps. A sender that finds it awake touches no lock and writes nothing.
//!
//! Either the sender sees that the receiver sleeps, or the receiver sees what was queued: each writes first and
//! reads second, with a full fence between.

use super::sync::{AtomicU8, Mutex, Ordering, fence, lock};
use std::task::Waker;

const AWAKE: u8 = 0;
const ASLEEP: u8 = 1;
const GONE: u8 = 2;

pub(super) struct Parking {
    state: AtomicU8,
    waker: Mutex<Option<Waker>>,
}

// === impl Parking ===

impl Parking {
    pub(super) fn new() -> Self {
        Self { state: AtomicU8::new(AWAKE), waker: Mutex::new(None) }
    }

    /// Called by the receiver, which then looks once more at what it waits for, and only then sleeps.
    pub(super) fn prepare(&self, waker: &Waker) {
        let mut slot = lock(&self.waker);
        let stale = match &*slot {
            Some(known) if known.will_wake(waker) => None,
            _ => slot.replace(waker.clone()),
        };
        drop(slot);
        // It may hold the last reference to a task, so it goes without the lock.
        drop(stale);
        self.state.store(ASLEEP, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Called by the receiver when it found something after all.
    pub(super) fn stay_awake(&self) {
        self.state.store(AWAKE, Ordering::Relaxed);
    }

    /// Called by the receiver as the last it does, before it empties the queue.
    pub(super) fn leave(&self) {
        self.state.store(GONE, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let stale = lock(&self.waker).take();
        drop(stale);
    }

    /// Wakes the receiver if it sleeps, after something that it waits for was done. Whether there is one.
    pub(super) fn notify(&self) -> bool {
        fence(Ordering::SeqCst);
        match self.state.load(Ordering::Relaxed) {
            AWAKE => true,
            GONE => false,
            _ => {
                self.wake();
                true
            }
        }
    }

    /// Whether the receiver was dropped.
    pub(super) fn is_gone(&self) -> bool {
        self.state.load(Ordering::Relaxed) == GONE
    }

    #[cold]
    fn wake(&self) {
        // Only one of several senders wakes it.
        let won =
            self.state.compare_exchange(ASLEEP, AWAKE, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        let waker = if won { lock(&self.waker).take() } else { None };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
