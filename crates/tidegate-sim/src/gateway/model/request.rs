use crate::agenda::Time;
use crate::scenario::Work;
use tidegate_core::admission::{InFlightTracker, Permit};
use tidegate_core::limit::UpstreamOutcome;
use tidegate_core::routing::{TriedUpstreams, UpstreamTicket};

pub type HeldPermit<'a> = Option<Permit<&'a InFlightTracker>>;

/// One request, from its due time until its client is done.
#[derive(Debug)]
pub struct Request<'a> {
    pub due: Time,
    /// The begin of this attempt.
    pub began: Time,
    pub sent_at: Time,
    pub work: Work,
    pub class: u16,
    /// Retries of its client.
    pub returns: u32,
    /// Changes with every state: events planned for an earlier state are void.
    pub stamp: u32,
    /// Changes with every attempt.
    pub attempt: u32,
    pub state: State,
    /// True if the gateway's limits count it.
    pub counted: bool,
    pub permit: HeldPermit<'a>,
    /// The permit of its tenant's share.
    pub tenant: HeldPermit<'a>,
    /// The permit of its upstream's share.
    pub share: HeldPermit<'a>,
    pub ticket: Option<UpstreamTicket>,
    /// The end of its last attempt at an upstream, for a limit that is found.
    pub outcome: UpstreamOutcome,
    pub upstream: u16,
    pub tried: TriedUpstreams<u16>,
    /// Broken connections that did not count against their upstream.
    pub forgiven: u8,
}

/// The state of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// With its client, before an attempt or a retry.
    Away,
    /// Answered by the gateway itself.
    Control,
    /// In the queue of the pool.
    Queued,
    /// With an upstream.
    Sent,
}

/// Requests by number. A slot is reused as soon as its request is over, so memory follows the requests under way.
#[derive(Debug, Default)]
pub struct Slab<'a> {
    slots: Vec<Request<'a>>,
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
            outcome: UpstreamOutcome::Ignored,
            upstream: 0,
            tried: TriedUpstreams::default(),
            forgiven: 0,
        }
    }
}

// === impl State ===

impl State {
    pub const COUNT: usize = 4;

    pub const fn index(self) -> usize {
        self as usize
    }
}

// === impl Slab ===

impl<'a> Slab<'a> {
    pub fn insert(&mut self, due: Time, class: u16, work: Work) -> u32 {
        match self.free.pop() {
            Some(id) => {
                let slot = &mut self.slots[id as usize];
                let (stamp, attempt) = (slot.stamp, slot.attempt);
                *slot = Request { stamp, attempt, ..Request::new(due, class, work) };
                id
            }
            None => {
                self.slots.push(Request::new(due, class, work));
                (self.slots.len() - 1) as u32
            }
        }
    }

    pub fn remove(&mut self, id: u32) {
        let slot = &mut self.slots[id as usize];
        slot.stamp = slot.stamp.wrapping_add(1);
        slot.attempt = slot.attempt.wrapping_add(1);
        self.free.push(id);
    }

    pub fn get(&self, id: u32) -> &Request<'a> {
        &self.slots[id as usize]
    }

    pub fn get_mut(&mut self, id: u32) -> &mut Request<'a> {
        &mut self.slots[id as usize]
    }

    pub fn is_at(&self, id: u32, stamp: u32) -> bool {
        self.slots[id as usize].stamp == stamp
    }

    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns the numbers of all slots, also of empty ones.
    pub fn numbers(&self) -> std::ops::Range<u32> {
        0..self.slots.len() as u32
    }
}
