use super::demand::Demand;
use super::error::{Overload, RouteError};
use super::pick::Pick;
use super::pool::{Pool, RouteQuery};
use crate::routing::availability::Availability;
use crate::routing::load::Standing;
use crate::routing::thresholds::Threshold;
use crate::sync::{AtomicU64, Ordering};
use std::time::Duration;

/// Chooses the upstream of each request, or explains the refusal when all are busy.
///
/// Shared between threads: it holds no lock, and reserves a slot in the same step in which it checks that one is
/// free ([`Pool::try_reserve`]). Of many requests at once, exactly as many get through as there are slots.
#[derive(Debug)]
pub struct RoutingPolicy {
    pick: Pick,
    turn: AtomicU64,
}

// === impl RoutingPolicy ===

impl RoutingPolicy {
    /// Creates a policy that picks so.
    #[must_use]
    pub fn new(pick: Pick) -> Self {
        Self { pick, turn: AtomicU64::new(0) }
    }

    /// Returns the way of choosing among upstreams that have room.
    #[must_use]
    pub fn pick(&self) -> Pick {
        self.pick
    }

    /// Reserves a slot for this request.
    ///
    /// When no upstream can be reached, one that is down is tried: its failure tells the client more than a guess.
    ///
    /// # Errors
    ///
    /// When all upstreams are busy, there is none, or all are excluded. Nothing is reserved.
    pub fn route<P: Pool>(
        &self,
        pool: &mut P,
        query: &RouteQuery,
    ) -> Result<P::Reservation, RouteError> {
        if let Some(index) = self.choose(pool, query.draw)
            && let Some(reservation) = try_reserve(pool, index)
        {
            return Ok(reservation);
        }
        // The chosen one was full by then, too small for this request, or excluded: try every other that is free.
        let size = pool.availability().size();
        let start = query.draw as usize % size.max(1);
        for (mut from, end) in [(start, size), (0, start)] {
            while let Some(index) = pool.availability().free().first_in(from..end) {
                if let Some(reservation) = try_reserve(pool, index) {
                    return Ok(reservation);
                }
                from = index + 1;
            }
        }
        self.last_resort(pool, query)
    }

    /// Reserves a slot at the upstream that the request names; `None` if the pool has no such upstream.
    ///
    /// # Errors
    ///
    /// When that upstream is busy, unknown or excluded. Nothing is reserved.
    pub fn route_to<P: Pool>(
        &self,
        pool: &mut P,
        index: Option<usize>,
        query: &RouteQuery,
    ) -> Result<P::Reservation, RouteError> {
        let index = index.ok_or(RouteError::UnknownUpstream)?;
        if pool.is_excluded(index) {
            return Err(RouteError::Exhausted);
        }
        pool.try_reserve(index).ok_or_else(|| {
            let threshold = match pool.availability().standing(index) {
                Standing::Busy(threshold) => Some(threshold),
                Standing::Free | Standing::Silent | Standing::NotReady => None,
            };
            let retry_after = retry_after(pool.demand(), query.dry_run, query.now);
            RouteError::Overloaded(Overload { busy: 1, total: 1, threshold, retry_after })
        })
    }

    /// Chooses an upstream that is up whether it is busy or not, for a dry run.
    pub fn choose_anyway<P: Pool>(&self, pool: &P, query: &RouteQuery) -> Option<usize> {
        let up = pool.availability().up();
        let left = |index: &usize| !pool.is_excluded(*index);
        // No upstream has room, so none has the fewest requests: the better of two is as good.
        let loads = pool.availability().loads();
        let two =
            Pick::PowerOfTwo.choose(up, loads, |index| pool.expected_wait(index), query.draw, 0);
        two.filter(left).or_else(|| up.iter().find(left))
    }

    /// Explains why no upstream took a request: those that are up and ready are busy for it.
    pub fn refuse<P: Pool>(&self, pool: &P, dry_run: bool, now: Duration) -> RouteError {
        let availability = pool.availability();
        let retry_after = retry_after(pool.demand(), dry_run, now);
        let by = |threshold: &Threshold| availability.count(Standing::Busy(*threshold));
        let starting = availability.count(Standing::NotReady);
        let total = availability.size();
        let busy = match availability.up().len() {
            0 => total,
            up => up.saturating_sub(starting),
        };
        if busy == 0 {
            return RouteError::NoUpstreams { total, starting };
        }
        let threshold = Threshold::ALL.into_iter().max_by_key(by).filter(|most| by(most) > 0);
        RouteError::Overloaded(Overload { busy, total, threshold, retry_after })
    }

    /// Returns `true` if a request would be tried: an upstream has room, or all are down.
    #[must_use]
    pub fn has_room(availability: &Availability) -> bool {
        !availability.free().is_empty() || availability.up().is_empty()
    }

    /// Returns `true` if an upstream is up and not starting: then only its load keeps a request from it.
    #[must_use]
    pub fn is_ready(availability: &Availability) -> bool {
        match availability.count(Standing::NotReady) {
            0 => !availability.up().is_empty(),
            starting => availability.up().len() > starting,
        }
    }

    fn choose<P: Pool>(&self, pool: &P, draw: u64) -> Option<usize> {
        let turn = match self.pick {
            Pick::RoundRobin => self.turn.fetch_add(1, Ordering::Relaxed),
            _ => 0,
        };
        let availability = pool.availability();
        let (free, loads) = (availability.free(), availability.loads());
        self.pick.choose(free, loads, |index| pool.expected_wait(index), draw, turn)
    }

    /// Tries the upstreams that are down when none that is up is left to try; otherwise refuses.
    fn last_resort<P: Pool>(
        &self,
        pool: &mut P,
        query: &RouteQuery,
    ) -> Result<P::Reservation, RouteError> {
        let availability = pool.availability();
        if availability.up().iter().any(|index| !pool.is_excluded(index)) {
            return Err(self.refuse(pool, query.dry_run, query.now));
        }
        let size = availability.size();
        let down: Vec<_> = (0..size).filter(|index| !pool.is_excluded(*index)).collect();
        if !down.is_empty() {
            // Thresholds bind here too: when an upstream comes back it has all that was sent to it.
            let start = query.draw as usize % down.len();
            let mut in_turn = down[start..].iter().chain(&down[..start]);
            let reservation = in_turn.find_map(|index| pool.try_reserve(*index));
            return reservation.ok_or_else(|| self.refuse(pool, query.dry_run, query.now));
        }
        if size > 0 {
            return Err(RouteError::Exhausted);
        }
        retry_after(pool.demand(), query.dry_run, query.now);
        Err(RouteError::NoUpstreams { total: 0, starting: 0 })
    }
}

fn try_reserve<P: Pool>(pool: &mut P, index: usize) -> Option<P::Reservation> {
    if pool.is_excluded(index) { None } else { pool.try_reserve(index) }
}

/// Counts a refusal and gives its client a turn to return. In a dry run nothing is counted, and no turn is given.
fn retry_after(demand: &Demand, dry_run: bool, now: Duration) -> Duration {
    if dry_run { demand.advice(now) } else { demand.refuse(now) }
}
