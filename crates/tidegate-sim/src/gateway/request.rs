use crate::agenda::Time;
use crate::scenario::Work;
use tidegate_core::admission::{InFlightTracker, Permit};
use tidegate_core::routing::Ticket;

pub(super) type Held<'a> = Option<Permit<&'a InFlightTracker>>;

/// One request, from when it is due until its client is done with it.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) due: Time,
    /// When this attempt began.
    pub(super) began: Time,
    pub(super) sent_at: Time,
    pub(super) work: Work,
    pub(super) class: u16,
    /// How often its client came back.
    pub(super) returns: u32,
    /// Changes with every state: what was planned for an earlier one is void.
    pub(super) stamp: u32,
    /// Changes with every attempt.
    pub(super) attempt: u32,
    pub(super) state: State,
    /// Whether the gateway's limits count it.
    pub(super) counted: bool,
    pub(super) permit: Held<'a>,
    /// What it holds of its tenant's share.
    pub(super) tenant: Held<'a>,
    /// What it holds of its worker's share.
    pub(super) share: Held<'a>,
    pub(super) ticket: Option<Ticket>,
    pub(super) worker: u16,
    pub(super) tried: Tried,
    /// How often a connection that broke was forgiven its worker.
    pub(super) forgiven: u8,
    pub(super) last: Last,
}

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// With its client, who will come back or is just asking.
    Away,
    /// Answered by the gateway itself.
    Control,
    /// In the line of a worker.
    Line,
    /// With a worker.
    Sent,
}

/// Why the last worker that was offered it did not take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Last {
    /// None was offered it.
    None,
    /// Its line refused.
    Line(&'static str),
    /// It could not be reached, or broke off.
    Broken,
}

/// The workers that one request has been offered to: at most three, as the gateway has it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tried {
    workers: [u16; Tried::MOST],
    count: u8,
}

/// Requests by number. A place is used again as soon as its request is over, so memory follows what is under
/// way.
#[derive(Debug, Default)]
pub(super) struct Slab<'a> {
    places: Vec<Request<'a>>,
    free: Vec<u32>,
}

// === impl Request ===

impl Request<'_> {
    fn new(due: Time, class: u16, work: Work) -> Self {
        Self {
            due,
            began: due,
            sent_at: 0,
            work,
            class,
            returns: 0,
            stamp: 0,
            attempt: 0,
            state: State::Away,
            counted: false,
            permit: None,
            tenant: None,
            share: None,
            ticket: None,
            worker: 0,
            tried: Tried::default(),
            forgiven: 0,
            last: Last::None,
        }
    }
}

// === impl State ===

impl State {
    pub(super) const COUNT: usize = 4;

    pub(super) const fn index(self) -> usize {
        self as usize
    }
}

// === impl Tried ===

impl Tried {
    const MOST: usize = 3;

    pub(super) fn insert(&mut self, worker: u16) {
        if let Some(slot) = self.workers.get_mut(usize::from(self.count)) {
            *slot = worker;
            self.count += 1;
        }
    }

    pub(super) fn has(&self, worker: usize) -> bool {
        let tried = &self.workers[..usize::from(self.count)];
        tried.iter().any(|one| usize::from(*one) == worker)
    }

    pub(super) fn is_full(&self) -> bool {
        usize::from(self.count) == Self::MOST
    }
}

// === impl Slab ===

impl<'a> Slab<'a> {
    pub(super) fn insert(&mut self, due: Time, class: u16, work: Work) -> u32 {
        match self.free.pop() {
            Some(id) => {
                let place = &mut self.places[id as usize];
                let (stamp, attempt) = (place.stamp, place.attempt);
                *place = Request { stamp, attempt, ..Request::new(due, class, work) };
                id
            }
            None => {
                self.places.push(Request::new(due, class, work));
                (self.places.len() - 1) as u32
            }
        }
    }

    pub(super) fn remove(&mut self, id: u32) {
        let place = &mut self.places[id as usize];
        place.stamp = place.stamp.wrapping_add(1);
        place.attempt = place.attempt.wrapping_add(1);
        self.free.push(id);
    }

    pub(super) fn get(&self, id: u32) -> &Request<'a> {
        &self.places[id as usize]
    }

    pub(super) fn get_mut(&mut self, id: u32) -> &mut Request<'a> {
        &mut self.places[id as usize]
    }

    pub(super) fn is_at(&self, id: u32, stamp: u32) -> bool {
        self.places[id as usize].stamp == stamp
    }

    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// The numbers of all places, also of those that are empty.
    pub(super) fn numbers(&self) -> std::ops::Range<u32> {
        0..self.places.len() as u32
    }
}
