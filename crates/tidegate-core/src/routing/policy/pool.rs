use super::demand::Demand;
use crate::routing::availability::Availability;
use crate::routing::load::ExpectedWait;
use std::time::Duration;

/// The upstreams of one model, as [`RoutingPolicy`](super::RoutingPolicy) sees them for one request.
pub trait Pool {
    /// A slot at an upstream; given back by its owner.
    type Reservation;

    /// Returns the upstreams that are up and have room.
    fn availability(&self) -> &Availability;

    /// Returns the demand for the pool's model.
    fn demand(&self) -> &Demand;

    /// Returns `true` if the request was already tried at this upstream.
    fn is_excluded(&self, index: usize) -> bool;

    /// Returns what is known of the wait at an upstream.
    fn expected_wait(&self, index: usize) -> ExpectedWait;

    /// Reserves a slot at an upstream within its thresholds and limit, in one step with the check.
    fn try_reserve(&mut self, index: usize) -> Option<Self::Reservation>;
}

/// One request to route.
#[derive(Clone, Copy, Debug)]
pub struct RouteQuery {
    /// True if the caller ignores a refusal, which then is not counted.
    pub dry_run: bool,
    /// A random number.
    pub draw: u64,
    /// The time since any fixed start.
    pub now: Duration,
}
