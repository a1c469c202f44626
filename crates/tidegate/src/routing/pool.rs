use super::ask::Ask;
use super::assignment::Assignment;
use super::model::Model;
use super::pass::Pass;
use super::upstream::{ChargeError, Upstream};
use super::upstream_id::UpstreamId;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::routing::{self, Availability, Demand, ExpectedWait};

/// The upstreams of one model.
#[derive(Debug)]
pub(super) struct Pool {
    pub members: Vec<Arc<Upstream>>,
    pub model: Arc<Model>,
    pub availability: Arc<Availability>,
}

/// A pool as the routing policy sees it for one request.
pub(super) struct PoolView<'a> {
    pub pool: &'a Pool,
    pub ask: &'a Ask<'a>,
    pub now: Duration,
    /// The search that this is a part of, for a request that waits.
    pub pass: Option<&'a Pass>,
    /// Upstreams that have room, but not for this request.
    pub too_small: Vec<UpstreamId>,
}

// === impl PoolView ===

impl routing::Pool for PoolView<'_> {
    type Reservation = Assignment;

    fn availability(&self) -> &Availability {
        &self.pool.availability
    }

    fn demand(&self) -> &Demand {
        &self.pool.model.demand
    }

    fn is_excluded(&self, index: usize) -> bool {
        let not = self.ask.not;
        !not.is_empty() && not.contains(&self.pool.members[index].id())
    }

    fn expected_wait(&self, index: usize) -> ExpectedWait {
        self.pool.members[index].expected_wait(self.now)
    }

    fn try_reserve(&mut self, index: usize) -> Option<Assignment> {
        let (upstream, model) = (&self.pool.members[index], &self.pool.model);
        if self.pass.is_some_and(|pass| !pass.allows(upstream.id())) {
            return None;
        }
        let ticket = match upstream.try_charge(self.ask.charge, model, self.now) {
            Ok(ticket) => ticket,
            Err(ChargeError::Full) => return None,
            Err(ChargeError::TooSmall) => {
                self.too_small.push(upstream.id());
                return None;
            }
        };
        Some(Assignment::new(upstream, model, ticket, self.ask.priority, self.now))
    }
}

impl<'a> PoolView<'a> {
    pub fn new(pool: &'a Pool, ask: &'a Ask<'a>, now: Duration) -> Self {
        Self { pool, ask, now, pass: None, too_small: Vec::new() }
    }

    /// Reserves a slot whatever the thresholds say.
    pub fn reserve_anyway(&self, index: usize) -> Assignment {
        let upstream = &self.pool.members[index];
        let ticket = upstream.charge_anyway(self.ask.charge, self.now);
        Assignment::new(upstream, &self.pool.model, ticket, self.ask.priority, self.now)
    }
}
