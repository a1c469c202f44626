//! Implementation: the balance, those who wait for it, and where it went.
//!
//! One signed word holds what may still be taken. A sender takes what its message weighs in one
//! compare-exchange, the receiver puts it back with one addition, and a resize is one addition of the
//! difference: the balance is negative when more is in flight than the new window, and receives repay it.
//!
//! Whoever finds too little sets [`Word::WAITING`] in the exchange that proves it, and queues up. From then on
//! nobody takes credits past it, and every return of credits sees the flag in the very word it adds to: so no
//! wake-up is lost. What is returned is handed to the first who waits, not merely offered to all.

use super::credits::{Credits, Word};
use super::parking::Parking;
use super::sync::{
    Arc, AtomicI64, AtomicU64, AtomicUsize, Mutex, MutexGuard, Ordering, Padded, lock,
};
use super::waiters::{Answer, Ask, Ticket, WaitList};
use super::wakes::Wakes;
use super::weight::Window;
use std::task::Waker;

/// What is shared by a channel's ends, whatever its messages are.
pub(super) struct Gate {
    word: Padded<AtomicI64>,
    pub(super) parking: Padded<Parking>,
    /// Written by the receiver alone.
    departed_items: Padded<AtomicU64>,
    /// Written with the lock held.
    granted: AtomicI64,
    leased: AtomicI64,
    /// Granted to a sender that has not sent yet: it holds a slot, or has not run since it was served.
    reserved: AtomicI64,
    senders: AtomicUsize,
    slow: Mutex<Slow>,
}

#[derive(Default)]
struct Slow {
    waiters: WaitList,
    closing: WaitList,
    waits: u64,
    /// The most that was ever reported, since what it is computed from can't all be read at once.
    arrived_items: u64,
}

/// Why credits were not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotTaken {
    Full,
    Closed,
}

/// What there is to know of a gate at one time.
pub(super) struct Reading {
    pub(super) granted: Credits,
    pub(super) balance: Credits,
    pub(super) leased: Credits,
    pub(super) reserved: Credits,
    pub(super) waiting: usize,
    pub(super) waits: u64,
    pub(super) arrived_items: u64,
    pub(super) departed_items: u64,
    pub(super) closed: bool,
}

/// What was found at the end of an attempt to wait.
pub(super) enum Enrolled {
    Taken(Credits),
    Closed,
    Waiting(Ticket),
}

// === impl Gate ===

impl Gate {
    pub(super) fn new(window: Window) -> Arc<Self> {
        let granted = Credits::window(window).to_bits();
        Arc::new(Self {
            word: Padded(AtomicI64::new(granted)),
            parking: Padded(Parking::new()),
            departed_items: Padded(AtomicU64::new(0)),
            granted: AtomicI64::new(granted),
            leased: AtomicI64::new(0),
            reserved: AtomicI64::new(0),
            senders: AtomicUsize::new(1),
            slow: Mutex::new(Slow::default()),
        })
    }

    pub(super) fn granted(&self) -> Credits {
        Credits::from_bits(self.granted.load(Ordering::Relaxed))
    }

    pub(super) fn is_closed(&self) -> bool {
        self.word().is_closed()
    }

    /// Takes this much if nobody waits and there is room.
    pub(super) fn try_take(&self, charge: Credits) -> Result<(), NotTaken> {
        self.try_take_some(|available| charge.fits(available).then_some(charge)).map(|_| ())
    }

    /// Takes what `choose` wants of what there is, if nobody waits.
    pub(super) fn try_take_some(
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

    /// As [`try_take`](Self::try_take), and what is heavier than the whole window is taken from an empty channel.
    pub(super) fn try_take_any(&self, charge: Credits) -> Result<(), NotTaken> {
        match self.try_take(charge) {
            Err(NotTaken::Full) if !charge.fits(self.granted()) => {}
            done => return done,
        }
        let slow = self.lock();
        let mut word = self.word();
        loop {
            if word.is_closed() {
                return Err(NotTaken::Closed);
            }
            let ask = Ask { least: charge, most: charge };
            if !slow.waiters.is_empty() || self.admits(word, ask).is_none() {
                return Err(NotTaken::Full);
            }
            match self.exchange(word, word.less(charge)) {
                Ok(()) => return Ok(()),
                Err(newer) => word = newer,
            }
        }
    }

    /// Takes what is asked for, or waits behind those who do.
    pub(super) fn enroll(&self, ask: Ask, waker: &Waker) -> Enrolled {
        let mut slow = self.lock();
        let mut word = self.word();
        loop {
            if word.is_closed() {
                return Enrolled::Closed;
            }
            let charge = if slow.waiters.is_empty() { self.admits(word, ask) } else { None };
            let next = match charge {
                Some(charge) => word.less(charge),
                None => word.with_waiting(true),
            };
            match (self.exchange(word, next), charge) {
                (Ok(()), Some(charge)) => return Enrolled::Taken(charge),
                (Ok(()), None) => {
                    slow.waits += 1;
                    return Enrolled::Waiting(slow.waiters.join(ask, waker.clone()));
                }
                (Err(newer), _) => word = newer,
            }
        }
    }

    /// What became of one who waits; an answer spends the ticket.
    pub(super) fn look(&self, ticket: &Ticket, waker: &Waker) -> Answer {
        let (answer, stale) = self.lock().waiters.look(ticket, waker);
        drop(stale);
        if let Answer::Granted(credits) = answer {
            self.unreserve(credits);
        }
        answer
    }

    /// One who waits gives up; what it was granted goes to the others.
    pub(super) fn leave(&self, ticket: &Ticket) {
        let mut slow = self.lock();
        let (answer, waker) = slow.waiters.leave(ticket);
        if slow.waiters.is_empty() {
            self.word.0.fetch_and(!Word::WAITING, Ordering::AcqRel);
        }
        drop(slow);
        drop(waker);
        match answer {
            // The next may be lighter than the one that left.
            Answer::Waiting => self.serve(),
            Answer::Granted(credits) => {
                self.unreserve(credits);
                self.give_back(credits);
            }
            Answer::Refused => {}
        }
    }

    /// Returns credits, and serves those who wait for them.
    pub(super) fn release(&self, credits: Credits) -> Word {
        let before = Word(self.word.0.fetch_add(credits.to_bits(), Ordering::AcqRel));
        if before.is_waiting() {
            self.serve();
        }
        before
    }

    /// As [`release`](Self::release), by others than the receiver: once closed, it may be waiting for the last of
    /// them.
    pub(super) fn give_back(&self, credits: Credits) {
        if self.release(credits).is_closed() {
            self.parking.0.notify();
        }
    }

    pub(super) fn reserve(&self, credits: Credits) {
        self.reserved.fetch_add(credits.to_bits(), Ordering::Relaxed);
    }

    pub(super) fn unreserve(&self, credits: Credits) {
        self.reserved.fetch_sub(credits.to_bits(), Ordering::Relaxed);
    }

    /// Received, and not released yet.
    pub(super) fn lease(&self, credits: Credits) {
        self.leased.fetch_add(credits.to_bits(), Ordering::AcqRel);
    }

    /// First no longer leased, then free: what is between the two looks as if it were queued, never as if the
    /// channel were empty.
    pub(super) fn end_lease(&self, credits: Credits) {
        self.leased.fetch_sub(credits.to_bits(), Ordering::AcqRel);
        self.give_back(credits);
    }

    /// Called by the receiver alone, after the credits are released or leased.
    pub(super) fn count_departed(&self, credits: Credits) {
        let departed = self.departed_items.0.load(Ordering::Relaxed);
        self.departed_items
            .0
            .store(departed.wrapping_add(credits.items() as u64), Ordering::Release);
    }

    pub(super) fn resize(&self, window: Window) {
        let slow = self.lock();
        let next = Credits::window(window);
        let grown = next - self.granted();
        self.granted.store(next.to_bits(), Ordering::Relaxed);
        self.word.0.fetch_add(grown.to_bits(), Ordering::AcqRel);
        let anybody = !slow.waiters.is_empty();
        drop(slow);
        if anybody {
            self.serve();
        }
    }

    /// No more messages; whoever waits is told.
    pub(super) fn close(&self) {
        self.word.0.fetch_or(Word::CLOSED, Ordering::AcqRel);
        let mut wakes = Wakes::default();
        loop {
            let mut slow = self.lock();
            while !wakes.is_full() {
                let refused = slow.waiters.refuse_first().or_else(|| slow.closing.refuse_first());
                match refused {
                    Some(waker) => wakes.add(waker),
                    None => break,
                }
            }
            if slow.waiters.is_empty() {
                self.word.0.fetch_and(!Word::WAITING, Ordering::AcqRel);
            }
            drop(slow);
            if !wakes.wake_all() {
                return;
            }
        }
    }

    /// Waits for the close, unless it has come.
    pub(super) fn await_close(&self, waker: &Waker) -> Option<Ticket> {
        let mut slow = self.lock();
        let nothing = Ask { least: Credits::NONE, most: Credits::NONE };
        // Closing sets the flag first and takes the lock second.
        (!self.is_closed()).then(|| slow.closing.join(nothing, waker.clone()))
    }

    pub(super) fn look_for_close(&self, ticket: &Ticket, waker: &Waker) -> Answer {
        let (answer, stale) = self.lock().closing.look(ticket, waker);
        drop(stale);
        answer
    }

    pub(super) fn leave_closing(&self, ticket: &Ticket) {
        let (_, waker) = self.lock().closing.leave(ticket);
        drop(waker);
    }

    pub(super) fn add_sender(&self) {
        self.senders.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn drop_sender(&self) {
        if self.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.parking.0.notify();
        }
    }

    /// Whether nothing more can be queued. What was queued before is visible after this.
    pub(super) fn is_ended(&self) -> bool {
        self.senders.load(Ordering::Acquire) == 0 || (self.is_closed() && self.is_drained())
    }

    pub(super) fn read(&self) -> Reading {
        let mut slow = self.lock();
        // In this order, so that what departs meanwhile makes arrivals look too few, never too many.
        let departed_items = self.departed_items.0.load(Ordering::Acquire);
        let leased = Credits::from_bits(self.leased.load(Ordering::Acquire));
        let reserved = Credits::from_bits(self.reserved.load(Ordering::Acquire));
        let word = self.word();
        let (granted, balance) = (self.granted(), word.balance());
        let queued_items = (granted - balance - leased - reserved).items().max(0) as u64;
        slow.arrived_items = slow.arrived_items.max(departed_items.wrapping_add(queued_items));
        Reading {
            granted,
            balance,
            leased,
            reserved,
            waiting: slow.waiters.len(),
            waits: slow.waits,
            arrived_items: slow.arrived_items,
            departed_items,
            closed: word.is_closed(),
        }
    }

    /// Hands what there is to those who wait, in order, until the first can't have what it asks for.
    #[cold]
    fn serve(&self) {
        let mut wakes = Wakes::default();
        loop {
            let mut slow = self.lock();
            while !wakes.is_full() {
                match self.serve_first(&mut slow.waiters) {
                    Some(waker) => wakes.add(waker),
                    None => break,
                }
            }
            drop(slow);
            if !wakes.wake_all() {
                return;
            }
        }
    }

    fn serve_first(&self, waiters: &mut WaitList) -> Option<Waker> {
        let ask = waiters.first()?;
        let mut word = self.word();
        loop {
            let charge = self.admits(word, ask)?;
            match self.exchange(word, word.less(charge).with_waiting(waiters.len() > 1)) {
                Ok(()) => {
                    self.reserve(charge);
                    return waiters.grant_first(charge);
                }
                Err(newer) => word = newer,
            }
        }
    }

    /// What the first in line may take of this word. Called with the lock held, so that the window stands still.
    fn admits(&self, word: Word, ask: Ask) -> Option<Credits> {
        let (balance, granted) = (word.balance(), self.granted());
        let empty = balance == granted;
        if ask.most.fits(balance) {
            Some(ask.most)
        } else if ask.most.fits(granted) {
            // A chunk that the window holds is worth waiting for.
            None
        } else if ask.least.fits(balance) || (empty && !ask.least.fits(granted)) {
            Some(ask.least)
        } else {
            None
        }
    }

    /// Whether all that was taken has been received. The word first: a lease that ends meanwhile then makes this
    /// say no, and wakes the receiver; the other way round it could hide a message on its way.
    fn is_drained(&self) -> bool {
        let _slow = self.lock();
        let balance = self.word().balance();
        let leased = Credits::from_bits(self.leased.load(Ordering::Acquire));
        (self.granted() - balance - leased).is_none()
    }

    fn word(&self) -> Word {
        Word(self.word.0.load(Ordering::Acquire))
    }

    fn exchange(&self, from: Word, to: Word) -> Result<(), Word> {
        self.word
            .0
            .compare_exchange_weak(from.0, to.0, Ordering::AcqRel, Ordering::Acquire)
            .map(|_| ())
            .map_err(Word)
    }

    fn lock(&self) -> MutexGuard<'_, Slow> {
        lock(&self.slow)
    }
}
