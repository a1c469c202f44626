use super::super::line::{Place, RuntimeId};
use super::super::{ExecutorId, Ticket};
use super::optimistic::Optimistic;
use super::pull::Pull;
use super::queue::Queue;
use super::semaphore::Semaphore;
use super::{PlaceNext, Placement, Protocol, Step, World};
use std::time::Duration;

/// The strategy that is in force. An enum and not a box, so that a dispatcher can be cloned, compared and hashed
/// by whoever searches through all that it may do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// See [`Pull`].
    Pull(Pull),
    /// See [`Optimistic`].
    Optimistic(Optimistic),
    /// See [`Semaphore`].
    Semaphore(Semaphore),
    /// See [`Queue`].
    Queue(Queue),
}

// === impl Strategy ===

impl Strategy {
    /// The one of that name.
    pub fn new(placement: Placement) -> Self {
        match placement {
            Placement::Pull => Self::Pull(Pull::direct()),
            Placement::Reserve => Self::Pull(Pull::reserving()),
            Placement::Optimistic => Self::Optimistic(Optimistic),
            Placement::Semaphore => Self::Semaphore(Semaphore),
            Placement::Queue => Self::Queue(Queue::default()),
        }
    }

    fn inner(&mut self) -> &mut dyn PlaceNext {
        match self {
            Self::Pull(it) => it,
            Self::Optimistic(it) => it,
            Self::Semaphore(it) => it,
            Self::Queue(it) => it,
        }
    }

    /// See [`Place::next`](PlaceNext::next).
    pub fn next(
        &mut self,
        world: &World,
        now: Duration,
        chance: &mut dyn FnMut() -> u64,
    ) -> Option<Step> {
        self.inner().next(world, now, chance)
    }

    /// See [`Place::protocol`](PlaceNext::protocol).
    pub fn protocol(&self) -> Protocol {
        match self {
            Self::Pull(it) => it.protocol(),
            Self::Optimistic(it) => it.protocol(),
            Self::Semaphore(it) => it.protocol(),
            Self::Queue(it) => it.protocol(),
        }
    }

    /// See [`Place::came`](PlaceNext::came).
    pub fn came(&mut self, ticket: Ticket, place: Place, runtime: RuntimeId) {
        self.inner().came(ticket, place, runtime);
    }

    /// See [`Place::forget`](PlaceNext::forget).
    pub fn forget(&mut self, ticket: Ticket) {
        self.inner().forget(ticket);
    }

    /// See [`Place::found_executor`](PlaceNext::found_executor).
    pub fn found_executor(&mut self) {
        self.inner().found_executor();
    }

    /// See [`Place::lost_executor`](PlaceNext::lost_executor).
    pub fn lost_executor(&mut self, executor: ExecutorId) {
        self.inner().lost_executor(executor);
    }
}
