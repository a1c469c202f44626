//! Implementation: those who wait, in order. Joining, leaving and serving take the same time however many wait,
//! and memory is that of the most who ever waited at once.

use super::credits::Credits;
use std::mem;
use std::task::Waker;

/// The end of a chain of places.
const NOWHERE: usize = usize::MAX;

/// Credits that a sender waits for.
#[derive(Clone, Copy, Debug)]
pub(in crate::channel) struct Ask {
    /// Credits of the first message: with fewer, nothing can be sent.
    pub(in crate::channel) least: Credits,
    /// Credits of a chunk, at least as many. Granted if the window holds it, so that a full channel is not
    /// refilled one message at a time.
    pub(in crate::channel) most: Credits,
}

/// A place in a list.
#[derive(Debug)]
pub(in crate::channel) struct Ticket(usize);

/// Outcome of a wait.
#[derive(Debug)]
pub(in crate::channel) enum Answer {
    Waiting,
    Granted(Credits),
    Refused,
}

#[derive(Default)]
pub(in crate::channel) struct WaitList {
    places: Vec<Place>,
    /// Places that nobody has.
    free: Vec<usize>,
    first: Option<usize>,
    last: Option<usize>,
    waiting: usize,
}

struct Place {
    state: State,
    before: usize,
    after: usize,
}

enum State {
    Free,
    Waiting(Ask, Waker),
    Granted(Credits),
    Refused,
}

// === impl WaitList ===

impl WaitList {
    /// Number of waiting senders.
    pub(in crate::channel) fn len(&self) -> usize {
        self.waiting
    }

    pub(in crate::channel) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Behind all others.
    pub(in crate::channel) fn join(&mut self, ask: Ask, waker: Waker) -> Ticket {
        let before = self.last.unwrap_or(NOWHERE);
        let place = Place { state: State::Waiting(ask, waker), before, after: NOWHERE };
        let at = match self.free.pop() {
            Some(at) => {
                self.places[at] = place;
                at
            }
            None => {
                self.places.push(place);
                self.places.len() - 1
            }
        };
        match self.last {
            Some(last) => self.places[last].after = at,
            None => self.first = Some(at),
        }
        self.last = Some(at);
        self.waiting += 1;
        Ticket(at)
    }

    /// The credits that the first sender waits for.
    pub(in crate::channel) fn first(&self) -> Option<Ask> {
        match self.places[self.first?].state {
            State::Waiting(ask, _) => Some(ask),
            _ => None,
        }
    }

    /// Gives the first what it asked for. The waker is for the caller to wake, without the lock.
    pub(in crate::channel) fn grant_first(&mut self, credits: Credits) -> Option<Waker> {
        self.answer_first(State::Granted(credits))
    }

    /// Tells the first that it waits in vain.
    pub(in crate::channel) fn refuse_first(&mut self) -> Option<Waker> {
        self.answer_first(State::Refused)
    }

    /// Current answer to a ticket; a ticket with an answer is spent. Also returns the waker that is no longer
    /// needed, to be dropped without the lock: it may own the last reference to a task.
    pub(in crate::channel) fn look(
        &mut self,
        ticket: &Ticket,
        waker: &Waker,
    ) -> (Answer, Option<Waker>) {
        let state = &mut self.places[ticket.0].state;
        match state {
            State::Waiting(_, known) if known.will_wake(waker) => (Answer::Waiting, None),
            State::Waiting(_, known) => (Answer::Waiting, Some(mem::replace(known, waker.clone()))),
            State::Granted(credits) => {
                let answer = Answer::Granted(*credits);
                self.vacate(ticket.0);
                (answer, None)
            }
            State::Refused | State::Free => {
                self.vacate(ticket.0);
                (Answer::Refused, None)
            }
        }
    }

    /// Gives a ticket back, answered or not; its waker is for the caller to drop without the lock.
    pub(in crate::channel) fn leave(&mut self, ticket: &Ticket) -> (Answer, Option<Waker>) {
        let answer = match self.places[ticket.0].state {
            State::Waiting(..) => {
                self.unlink(ticket.0);
                Answer::Waiting
            }
            State::Granted(credits) => Answer::Granted(credits),
            State::Refused | State::Free => Answer::Refused,
        };
        let waker = match self.vacate(ticket.0) {
            State::Waiting(_, waker) => Some(waker),
            _ => None,
        };
        (answer, waker)
    }

    fn answer_first(&mut self, answer: State) -> Option<Waker> {
        let at = self.first?;
        self.unlink(at);
        match mem::replace(&mut self.places[at].state, answer) {
            State::Waiting(_, waker) => Some(waker),
            _ => None,
        }
    }

    fn unlink(&mut self, at: usize) {
        let Place { before, after, .. } = self.places[at];
        match before {
            NOWHERE => self.first = (after != NOWHERE).then_some(after),
            before => self.places[before].after = after,
        }
        match after {
            NOWHERE => self.last = (before != NOWHERE).then_some(before),
            after => self.places[after].before = before,
        }
        self.waiting -= 1;
    }

    fn vacate(&mut self, at: usize) -> State {
        self.free.push(at);
        mem::replace(&mut self.places[at].state, State::Free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn ask(items: i64) -> Ask {
        Ask { least: Credits::new(items, 0), most: Credits::new(items, 0) }
    }

    proptest! {
        /// Against a plain list of those who wait, whatever joins, leaves and is served.
        #[test]
        fn the_order_is_that_of_joining(
            steps in prop::collection::vec((0_u8..3, any::<prop::sample::Index>()), 0..200),
        ) {
            let (mut list, mut expected, mut most) = (WaitList::default(), VecDeque::new(), 0);
            for (number, (step, which)) in (1_i64..).zip(steps) {
                match step {
                    0 => {
                        let ticket = list.join(ask(number), Waker::noop().clone());
                        expected.push_back((number, ticket));
                    }
                    1 if !expected.is_empty() => {
                        let at = which.index(expected.len());
                        let (_, ticket) = expected.remove(at).expect("it is in the list");
                        prop_assert!(matches!(list.leave(&ticket), (Answer::Waiting, Some(_))));
                    }
                    _ => if let Some((number, ticket)) = expected.pop_front() {
                        prop_assert!(list.grant_first(Credits::new(number, 0)).is_some());
                        let (answer, _) = list.look(&ticket, Waker::noop());
                        let Answer::Granted(given) = answer else { panic!("{answer:?}") };
                        prop_assert_eq!(given.items(), number);
                    }
                }
                most = most.max(expected.len());
                prop_assert_eq!(list.len(), expected.len());
                prop_assert_eq!(list.is_empty(), expected.is_empty());
                let first = expected.front().map(|(number, _)| *number);
                prop_assert_eq!(list.first().map(|ask| ask.least.items()), first);
            }
            prop_assert_eq!(list.places.len(), most, "places are used again");
        }
    }
}
