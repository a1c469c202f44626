//! Implementation: the balance, those who wait for it, and where it went.
//!
//! One signed balance says what may still be taken. A sender takes what its message weighs in one
//! compare-exchange, the receiver puts it back with one addition, and a resize is one addition of the difference:
//! the balance is negative when more is in flight than the new window, and receives repay it.
//!
//! The balance is kept in two words that add up to it, so that sender and receiver do not fight for one: senders
//! take from `open`, and what is put back is in `returned`, until a sender that finds too little moves it over.
//! The returned word is never negative and never taken from, so `open` alone never promises more than there is.
//!
//! The line of those who wait is in [`line`](super::line). Whoever finds too little in both words sets
//! [`PackedBalance::WAITING`] in both and joins it. From then on nobody takes credits past it, and every return of
//! credits sees the flag in the very word it adds to: so no wake-up is lost. Everything but the two fast paths
//! holds the lock.

use super::credits::{Credits, PackedBalance};
use super::waiters::{Ask, WaitList};
use crate::channel::sync::{Arc, AtomicI64, AtomicU64, Mutex, MutexGuard, Ordering, Padded, lock};
use crate::channel::weight::Window;
use std::mem;
use std::task::Waker;

/// State shared by the ends of a channel, whatever its messages are.
pub(in crate::channel) struct Gate {
    pub(in crate::channel) open: Padded<Open>,
    pub(in crate::channel) returned: Padded<Returned>,
    /// Written by the receiver alone.
    departed_items: Padded<AtomicU64>,
    /// Written with the lock held.
    granted: AtomicI64,
    pub(in crate::channel) leased: AtomicI64,
    /// Granted to a sender that has not sent yet: it holds a slot, or has not run since it was served.
    reserved: AtomicI64,
    slow: Mutex<Slow>,
}

/// Credits that senders take.
pub(in crate::channel) struct Open {
    pub(in crate::channel) word: AtomicI64,
    /// Written by whoever holds the inbox. Here because a sender has just written the word beside it.
    arrived_items: AtomicU64,
}

/// Credits that receives put back.
pub(in crate::channel) struct Returned {
    pub(in crate::channel) word: AtomicI64,
    /// Items, or bytes, that must be free before receives serve waiting senders. Written with the lock held.
    pub(in crate::channel) due: AtomicI64,
}

#[derive(Default)]
pub(in crate::channel) struct Slow {
    pub(in crate::channel) waiters: WaitList,
    pub(in crate::channel) closing: WaitList,
    /// The receiver of a closed channel, when it waits for what is on its way.
    receiver: Option<Waker>,
    pub(in crate::channel) waits: u64,
}

/// Why credits were not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::channel) enum NotTaken {
    Full,
    Closed,
}

/// Snapshot of a gate.
pub(in crate::channel) struct Reading {
    pub(in crate::channel) granted: Credits,
    pub(in crate::channel) balance: Credits,
    pub(in crate::channel) leased: Credits,
    pub(in crate::channel) reserved: Credits,
    pub(in crate::channel) waiting: usize,
    pub(in crate::channel) waits: u64,
    pub(in crate::channel) arrived_items: u64,
    pub(in crate::channel) departed_items: u64,
    pub(in crate::channel) closed: bool,
}

// === impl Gate ===

impl Gate {
    pub(in crate::channel) fn new(window: Window) -> Arc<Self> {
        let granted = Credits::window(window).to_bits();
        Arc::new(Self {
            open: Padded(Open { word: AtomicI64::new(granted), arrived_items: AtomicU64::new(0) }),
            returned: Padded(Returned { word: AtomicI64::new(0), due: AtomicI64::new(0) }),
            departed_items: Padded(AtomicU64::new(0)),
            granted: AtomicI64::new(granted),
            leased: AtomicI64::new(0),
            reserved: AtomicI64::new(0),
            slow: Mutex::new(Slow::default()),
        })
    }

    pub(in crate::channel) fn granted(&self) -> Credits {
        Credits::from_bits(self.granted.load(Ordering::Relaxed))
    }

    pub(in crate::channel) fn is_closed(&self) -> bool {
        self.word().is_closed()
    }

    /// Takes this much if nobody waits and it is at hand. Where it is not, `Full` is not the last word.
    pub(in crate::channel) fn try_take(&self, charge: Credits) -> Result<(), NotTaken> {
        self.try_take_some(|available| charge.fits(available).then_some(charge)).map(|_| ())
    }

    /// Takes what `choose` wants of what is at hand, if nobody waits.
    pub(in crate::channel) fn try_take_some(
        &self,
        mut choose: impl FnMut(Credits) -> Option<Credits>,
    ) -> Result<Credits, NotTaken> {
        let mut word = self.word();
        loop {
            if word.is_closed() {
                return Err(NotTaken::Closed);
            }
            if word.is_waiting() {
                return Err(NotTaken::Full);
            }
            let charge = choose(word.balance()).ok_or(NotTaken::Full)?;
            match self.exchange(word, word.less(charge)) {
                Ok(()) => return Ok(charge),
                Err(newer) => word = newer,
            }
        }
    }

    /// As [`try_take_some`](Self::try_take_some), of all there is.
    pub(in crate::channel) fn try_take_some_of_all(
        &self,
        mut choose: impl FnMut(Credits) -> Option<Credits>,
    ) -> Result<Credits, NotTaken> {
        match self.try_take_some(&mut choose) {
            Err(NotTaken::Full) => {}
            done => return done,
        }
        let slow = self.lock();
        if !slow.waiters.is_empty() {
            return Err(NotTaken::Full);
        }
        self.move_returned(false);
        // What is chosen depends on messages, whose code is foreign.
        drop(slow);
        self.try_take_some(choose)
    }

    /// As [`try_take`](Self::try_take), of all there is; and what is heavier than the whole window is taken from
    /// an empty channel.
    pub(in crate::channel) fn try_take_any(&self, charge: Credits) -> Result<(), NotTaken> {
        match self.try_take(charge) {
            Err(NotTaken::Full) => {}
            done => return done,
        }
        let slow = self.lock();
        if !slow.waiters.is_empty() {
            return Err(NotTaken::Full);
        }
        self.move_returned(false);
        self.take_admitted(Ask { least: charge, most: charge }, false).map(|_| ())
    }

    /// Returns what was received. Those who wait for it are served in time.
    pub(in crate::channel) fn release(&self, credits: Credits) {
        let before = self.put_back(credits);
        if before.is_waiting() {
            let returned = before.balance() + credits;
            let due = Credits::from_bits(self.returned.0.due.load(Ordering::Relaxed));
            if returned.items() >= due.items() || returned.bytes() >= due.bytes() {
                self.serve();
            }
        }
    }

    /// Returns credits by others than the receiver, and serves those who wait for them at once. Once closed, the
    /// receiver may be waiting for the last of them.
    pub(in crate::channel) fn give_back(&self, credits: Credits) {
        let before = self.put_back(credits);
        if before.is_waiting() {
            self.serve();
        }
        if before.is_closed() {
            let receiver = self.lock().receiver.take();
            if let Some(receiver) = receiver {
                receiver.wake();
            }
        }
    }

    pub(in crate::channel) fn reserve(&self, credits: Credits) {
        self.reserved.fetch_add(credits.to_bits(), Ordering::Relaxed);
    }

    pub(in crate::channel) fn unreserve(&self, credits: Credits) {
        self.reserved.fetch_sub(credits.to_bits(), Ordering::Relaxed);
    }

    /// Received, and not released yet.
    pub(in crate::channel) fn lease(&self, credits: Credits) {
        self.leased.fetch_add(credits.to_bits(), Ordering::AcqRel);
        // What is leased is no longer queued, so less must come back before those who wait are served.
        self.serve_if_waiting();
    }

    /// First no longer leased, then free: what is between the two looks as if it were queued, never as if the
    /// channel were empty.
    pub(in crate::channel) fn end_lease(&self, credits: Credits) {
        self.leased.fetch_sub(credits.to_bits(), Ordering::AcqRel);
        self.give_back(credits);
    }

    /// Called by the receiver alone, after the credits are released or leased.
    pub(in crate::channel) fn count_departed(&self, credits: Credits) {
        add(&self.departed_items.0, credits);
    }

    /// Called with the inbox held, so that nothing departs before it has arrived.
    pub(in crate::channel) fn count_arrived(&self, credits: Credits) {
        add(&self.open.0.arrived_items, credits);
    }

    pub(in crate::channel) fn resize(&self, window: Window) {
        let slow = self.lock();
        let next = Credits::window(window);
        let grown = next - self.granted();
        self.granted.store(next.to_bits(), Ordering::Relaxed);
        self.open.0.word.fetch_add(grown.to_bits(), Ordering::AcqRel);
        let anybody = !slow.waiters.is_empty();
        drop(slow);
        if anybody {
            self.serve();
        }
    }

    /// True if the gate is closed and all admitted messages are received. If not, `waker` is woken when an
    /// admitted message is given up; the inbox wakes it when one is sent.
    ///
    /// The balance first: a lease that ends meanwhile then makes this say no, and wakes the receiver; the other
    /// way round it could hide a message on its way.
    pub(in crate::channel) fn is_ended(&self, waker: Option<&Waker>) -> bool {
        if !self.is_closed() {
            return false;
        }
        let mut slow = self.lock();
        let balance = self.balance();
        let leased = Credits::from_bits(self.leased.load(Ordering::Acquire));
        let ended = (self.granted() - balance - leased).is_none();
        let waker = if ended { None } else { waker.cloned() };
        let stale = mem::replace(&mut slow.receiver, waker);
        drop(slow);
        drop(stale);
        ended
    }

    pub(in crate::channel) fn read(&self) -> Reading {
        let slow = self.lock();
        // In this order, so that no more departs than arrives.
        let departed_items = self.departed_items.0.load(Ordering::Acquire);
        let arrived_items = self.open.0.arrived_items.load(Ordering::Acquire);
        let leased = Credits::from_bits(self.leased.load(Ordering::Acquire));
        let reserved = Credits::from_bits(self.reserved.load(Ordering::Acquire));
        let (granted, balance) = (self.granted(), self.balance());
        Reading {
            granted,
            balance,
            leased,
            reserved,
            waiting: slow.waiters.len(),
            waits: slow.waits,
            arrived_items,
            departed_items,
            closed: self.is_closed(),
        }
    }

    fn put_back(&self, credits: Credits) -> PackedBalance {
        PackedBalance(self.returned.0.word.fetch_add(credits.to_bits(), Ordering::AcqRel))
    }

    /// Puts what was returned at hand. Called with the lock held, so that nobody sees it in neither place.
    pub(in crate::channel) fn move_returned(&self, waiting: bool) {
        if waiting {
            self.set_due();
        }
        let flags = self.word().closed_flag() | if waiting { PackedBalance::WAITING } else { 0 };
        let returned = PackedBalance(self.returned.0.word.swap(flags, Ordering::AcqRel)).balance();
        if !returned.is_none() {
            self.open.0.word.fetch_add(returned.to_bits(), Ordering::AcqRel);
        }
        if waiting {
            self.set_due();
        }
    }

    /// Both words. Called with the lock held, so that nothing is moved between them meanwhile.
    pub(in crate::channel) fn balance(&self) -> Credits {
        let returned = PackedBalance(self.returned.0.word.load(Ordering::Acquire)).balance();
        self.word().balance() + returned
    }

    pub(in crate::channel) fn word(&self) -> PackedBalance {
        PackedBalance(self.open.0.word.load(Ordering::Acquire))
    }

    pub(in crate::channel) fn exchange(
        &self,
        from: PackedBalance,
        to: PackedBalance,
    ) -> Result<(), PackedBalance> {
        self.open
            .0
            .word
            .compare_exchange_weak(from.0, to.0, Ordering::AcqRel, Ordering::Acquire)
            .map(|_| ())
            .map_err(PackedBalance)
    }

    pub(in crate::channel) fn lock(&self) -> MutexGuard<'_, Slow> {
        lock(&self.slow)
    }
}

/// To a count that only one thread at a time writes.
fn add(count: &AtomicU64, credits: Credits) {
    let before = count.load(Ordering::Relaxed);
    count.store(before.wrapping_add(credits.items() as u64), Ordering::Release);
}
