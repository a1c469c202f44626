//! Implementation: the queue of senders that wait for credits.
//!
//! Returned credits go to the first waiting sender, not to all at once: no sender overtakes another, and a heavy
//! message is not starved by light ones.
//!
//! While messages are queued, a sender gains nothing by being admitted at once: its message would wait inside the
//! channel instead. Therefore receives serve waiting senders once a part of the window is free, or no message is
//! queued, and not for every message: to wake a task can cost as much as a hundred messages. Everything else that
//! makes room serves them at once.

use super::credits::{Credits, PackedBalance};
use super::gate::{Gate, NotTaken};
use super::waiters::{Answer, Ask, Ticket};
use super::wakes::Wakes;
use crate::channel::sync::Ordering;
use std::task::Waker;

/// Receives serve waiting senders when this part of the window is free. A scheduler that aims for an occupancy of
/// 0.595 still sees seven eighths of that, which is more than half.
const FREE_PART: i64 = 8;

/// Result of an attempt to wait.
pub(in crate::channel) enum Enrolled {
    Taken(Credits),
    Closed,
    Waiting(Ticket),
}

// === impl Gate ===

impl Gate {
    /// Takes what is asked for, or waits behind those who do.
    pub(in crate::channel) fn enroll(&self, ask: Ask, waker: &Waker) -> Enrolled {
        let mut slow = self.lock();
        if slow.waiters.is_empty() {
            self.move_returned(false);
            match self.take_admitted(ask, false) {
                Ok(credits) => return Enrolled::Taken(credits),
                Err(NotTaken::Closed) => return Enrolled::Closed,
                Err(NotTaken::Full) => {}
            }
            // What was returned meanwhile saw no flag, and so is looked for once more now that it is set.
            self.open.0.word.fetch_or(PackedBalance::WAITING, Ordering::AcqRel);
            self.move_returned(true);
            if let Ok(credits) = self.take_admitted(ask, true) {
                self.end_waiting();
                return Enrolled::Taken(credits);
            }
        } else if self.is_closed() {
            return Enrolled::Closed;
        }
        slow.waits += 1;
        Enrolled::Waiting(slow.waiters.join(ask, waker.clone()))
    }

    /// Answer to a waiting sender; an answer spends the ticket.
    pub(in crate::channel) fn look(&self, ticket: &Ticket, waker: &Waker) -> Answer {
        let (answer, stale) = self.lock().waiters.look(ticket, waker);
        drop(stale);
        if let Answer::Granted(credits) = answer {
            self.unreserve(credits);
        }
        answer
    }

    /// One who waits gives up; what it was granted goes to the others.
    pub(in crate::channel) fn leave(&self, ticket: &Ticket) {
        let mut slow = self.lock();
        let (answer, waker) = slow.waiters.leave(ticket);
        if slow.waiters.is_empty() {
            self.end_waiting();
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

    /// Called by the receiver when nothing is left to come: what it returned is not held back any longer.
    pub(in crate::channel) fn serve_if_waiting(&self) {
        if PackedBalance(self.returned.0.word.load(Ordering::Acquire)).is_waiting() {
            self.serve();
        }
    }

    /// No more messages; whoever waits is told.
    pub(in crate::channel) fn close(&self) {
        let slow = self.lock();
        self.open.0.word.fetch_or(PackedBalance::CLOSED, Ordering::AcqRel);
        self.returned.0.word.fetch_or(PackedBalance::CLOSED, Ordering::AcqRel);
        drop(slow);
        let mut wakes = Wakes::default();
        loop {
            let mut slow = self.lock();
            while !wakes.is_full() {
                let refused = slow.waiters.refuse_first().or_else(|| slow.closing.refuse_first());
                match refused {
                    Some(waker) => wakes.add(Some(waker)),
                    None => break,
                }
            }
            if slow.waiters.is_empty() {
                self.end_waiting();
            }
            drop(slow);
            if !wakes.wake_all() {
                return;
            }
        }
    }

    /// Waits for the close, unless it has come.
    pub(in crate::channel) fn await_close(&self, waker: &Waker) -> Option<Ticket> {
        let mut slow = self.lock();
        let nothing = Ask { least: Credits::NONE, most: Credits::NONE };
        (!self.is_closed()).then(|| slow.closing.join(nothing, waker.clone()))
    }

    pub(in crate::channel) fn look_for_close(&self, ticket: &Ticket, waker: &Waker) -> Answer {
        let (answer, stale) = self.lock().closing.look(ticket, waker);
        drop(stale);
        answer
    }

    pub(in crate::channel) fn leave_closing(&self, ticket: &Ticket) {
        let (_, waker) = self.lock().closing.leave(ticket);
        drop(waker);
    }

    /// Hands what there is to those who wait, in order, until the first can't have what it asks for.
    #[cold]
    pub(in crate::channel) fn serve(&self) {
        let mut wakes = Wakes::default();
        loop {
            let mut slow = self.lock();
            if !slow.waiters.is_empty() {
                self.move_returned(true);
            }
            while let Some(ask) = slow.waiters.first()
                && !wakes.is_full()
                && let Ok(charge) = self.take_admitted(ask, true)
            {
                self.reserve(charge);
                wakes.add(slow.waiters.grant_first(charge));
                if slow.waiters.is_empty() {
                    self.end_waiting();
                }
            }
            drop(slow);
            if !wakes.wake_all() {
                return;
            }
        }
    }

    /// Takes the credits of the first waiting sender, from those at hand. Called with the lock held.
    pub(in crate::channel) fn take_admitted(
        &self,
        ask: Ask,
        closed_too: bool,
    ) -> Result<Credits, NotTaken> {
        let mut word = self.word();
        loop {
            if word.is_closed() && !closed_too {
                return Err(NotTaken::Closed);
            }
            let charge = self.admits(word, ask).ok_or(NotTaken::Full)?;
            match self.exchange(word, word.less(charge)) {
                Ok(()) => return Ok(charge),
                Err(newer) => word = newer,
            }
        }
    }

    /// Nobody waits any more. Called with the lock held.
    fn end_waiting(&self) {
        self.open.0.word.fetch_and(!PackedBalance::WAITING, Ordering::AcqRel);
        self.returned.0.word.fetch_and(!PackedBalance::WAITING, Ordering::AcqRel);
    }

    /// Says when receives serve those who wait: when enough is free, or nothing is queued. Called with the lock
    /// held, before the flag that makes it matter is set, and once more when it is.
    pub(in crate::channel) fn set_due(&self) {
        let granted = self.granted();
        let leased = Credits::from_bits(self.leased.load(Ordering::Relaxed));
        let queued = granted - self.balance() - leased;
        let due = granted.divided_by(FREE_PART).min(queued).max(Credits::new(1, 1));
        self.returned.0.due.store(due.to_bits(), Ordering::Relaxed);
    }

    /// Credits that the first waiting sender may take of this word. Called with the lock held, so that the window
    /// does not change.
    fn admits(&self, word: PackedBalance, ask: Ask) -> Option<Credits> {
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
}
