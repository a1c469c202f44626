use super::super::wait_queue::{QueuePosition, RuntimeId};
use super::super::{ExecutorId, Ticket};
use super::optimistic::Optimistic;
use super::pull::Pull;
use super::queue::Queue;
use super::semaphore::Semaphore;
use super::{DispatchState, Placement, PlacementPolicy, Protocol, Selection};
use std::time::Duration;

/// Strategy in force. An enum and not a box, so that a dispatcher can be cloned, compared and hashed by a model
/// checker.
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
    /// Creates the strategy of a placement.
    pub fn new(placement: Placement) -> Self {
        match placement {
            Placement::Pull => Self::Pull(Pull::direct()),
            Placement::Reserve => Self::Pull(Pull::reserving()),
            Placement::Optimistic => Self::Optimistic(Optimistic),
            Placement::Semaphore => Self::Semaphore(Semaphore),
            Placement::Queue => Self::Queue(Queue::default()),
        }
    }

    fn inner(&mut self) -> &mut dyn PlacementPolicy {
        match self {
            Self::Pull(policy) => policy,
            Self::Optimistic(policy) => policy,
            Self::Semaphore(policy) => policy,
            Self::Queue(policy) => policy,
        }
    }

    /// See [`PlacementPolicy::next`](PlacementPolicy::next).
    pub fn next(
        &mut self,
        state: &DispatchState,
        now: Duration,
        random: &mut dyn FnMut() -> u64,
    ) -> Option<Selection> {
        self.inner().next(state, now, random)
    }

    /// See [`PlacementPolicy::protocol`](PlacementPolicy::protocol).
    pub fn protocol(&self) -> Protocol {
        match self {
            Self::Pull(policy) => policy.protocol(),
            Self::Optimistic(policy) => policy.protocol(),
            Self::Semaphore(policy) => policy.protocol(),
            Self::Queue(policy) => policy.protocol(),
        }
    }

    /// See [`PlacementPolicy::enqueued`](PlacementPolicy::enqueued).
    pub fn enqueued(&mut self, ticket: Ticket, position: QueuePosition, runtime: RuntimeId) {
        self.inner().enqueued(ticket, position, runtime);
    }

    /// See [`PlacementPolicy::dequeued`](PlacementPolicy::dequeued).
    pub fn dequeued(&mut self, ticket: Ticket) {
        self.inner().dequeued(ticket);
    }

    /// See [`PlacementPolicy::executor_available`](PlacementPolicy::executor_available).
    pub fn executor_available(&mut self) {
        self.inner().executor_available();
    }

    /// See [`PlacementPolicy::executor_lost`](PlacementPolicy::executor_lost).
    pub fn executor_lost(&mut self, executor: ExecutorId) {
        self.inner().executor_lost(executor);
    }
}
