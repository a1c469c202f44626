use super::acquire_error::AcquireError;
use super::ask::{Ask, OwnedAsk};
use super::assignment::Assignment;
use super::monitor::WorkerMonitor;
use super::pass::Pass;
use super::pool::{Pool, PoolView};
use super::queue::{Position, WaitEnd, Waiter};
use super::sync::{Elapsed, Ordering, fence, timeout};
use super::upstream_id::UpstreamId;
use crate::rng::Rng;
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::queue::{Arrival, NotQueued, Offer};
use tidegate_core::routing::{Pick, Pool as _, RouteError, RouteQuery, RoutingPolicy};
use tokio::sync::oneshot;

/// Sends each request to an upstream that has room. When none has, the request waits its turn or is refused.
///
/// A slot is reserved in the same step in which it is found free: of many requests at once, exactly as many get
/// through as there are slots.
///
/// ```
/// use std::sync::Arc;
/// use tidegate::routing::*;
///
/// let monitor = Arc::new(WorkerMonitor::new(MonitorConfig {
///     thresholds: BusyThresholds { active_requests: Some(1), ..BusyThresholds::OFF },
///     ..MonitorConfig::default()
/// }));
/// monitor.add_upstream("10.0.0.7:8000", None);
/// let router = PushRouter::new(monitor, Pick::PowerOfTwo);
///
/// let first = router.route(&Ask::default())?;
/// assert_eq!(first.upstream().name(), "10.0.0.7:8000");
/// let refused = router.route(&Ask::default()).unwrap_err();
/// assert!(matches!(refused, RouteError::Overloaded(Overload { busy: 1, total: 1, .. })));
/// drop(first);
/// assert!(router.route(&Ask::default()).is_ok());
/// # Ok::<(), RouteError>(())
/// ```
#[derive(Debug)]
pub struct PushRouter {
    shared: Arc<Shared>,
}

/// The parts of a router that requests need while they wait.
#[derive(Debug)]
pub(super) struct Shared {
    monitor: Arc<WorkerMonitor>,
    policy: RoutingPolicy,
    rng: Rng,
}

/// A request that waits for a slot.
struct RoutedWaiter {
    router: Arc<Shared>,
    ask: OwnedAsk,
    slot: Cell<Option<Assignment>>,
    turn: oneshot::Sender<Turn>,
}

/// The end of a wait: a slot, or the reason that there is none.
type Turn = Result<Assignment, WaitEnd>;

// === impl PushRouter ===

impl PushRouter {
    /// Creates a router over the upstreams of a monitor.
    #[must_use]
    pub fn new(monitor: Arc<WorkerMonitor>, pick: Pick) -> Self {
        Self::with_rng(monitor, pick, Rng::from_process())
    }

    /// Creates a router that draws from this generator, for reproducible choices.
    #[must_use]
    pub fn with_rng(monitor: Arc<WorkerMonitor>, pick: Pick, rng: Rng) -> Self {
        let policy = RoutingPolicy::new(pick);
        Self { shared: Arc::new(Shared { monitor, policy, rng }) }
    }

    /// Returns the monitor of the upstreams.
    #[must_use]
    pub fn monitor(&self) -> &Arc<WorkerMonitor> {
        &self.shared.monitor
    }

    /// Reserves a slot for this request at an upstream that has room. It does not wait, and does not overtake
    /// requests that do ([`acquire`](Self::acquire)).
    ///
    /// When no upstream can be reached, one that is down is tried: its failure tells the client more than a guess.
    ///
    /// # Errors
    ///
    /// When all upstreams are busy, there is none, or all are excluded. Nothing is reserved.
    pub fn route(&self, ask: &Ask<'_>) -> Result<Assignment, RouteError> {
        self.route_at(ask, self.shared.rng.next_u64(), self.shared.monitor.now())
    }

    /// Does as [`route`](Self::route), with the caller's random number and time.
    ///
    /// # Errors
    ///
    /// As [`route`](Self::route).
    pub fn route_at(
        &self,
        ask: &Ask<'_>,
        draw: u64,
        now: Duration,
    ) -> Result<Assignment, RouteError> {
        let found = self.shared.search(ask, draw, now);
        found.map_err(|error| error.unwrap_or_else(|| self.shared.explain(ask, now)))
    }

    /// Reserves a slot for this request, and waits for one if it may: in the queue of its model, by priority, for
    /// as long as `wait_max`. A request that would wait for longer than a few services is refused at once.
    ///
    /// # Errors
    ///
    /// When all upstreams are busy and it may not wait or waited in vain, there is none, or all are excluded.
    /// Nothing is reserved.
    ///
    /// # Cancel safety
    ///
    /// A request that is dropped while it waits leaves the queue at once; a slot that it got goes to the next.
    pub async fn acquire(
        &self,
        ask: &Ask<'_>,
        wait_max: Duration,
    ) -> Result<Assignment, AcquireError> {
        let uncounted = Ask { dry_run: true, ..*ask };
        let shared = &self.shared;
        let started = shared.monitor.now();
        let until = started.saturating_add(wait_max);
        let mut now = started;
        loop {
            match shared.search(&uncounted, shared.rng.next_u64(), now) {
                Ok(assignment) => return Ok(assignment),
                Err(None | Some(RouteError::Overloaded(_))) => {}
                Err(Some(error)) => return Err(AcquireError::Route(error)),
            }
            let (position, turn) = match shared.arrive(ask, until, now) {
                Ok(waiting) => waiting,
                Err(NotQueued { position, wait, .. }) => {
                    return Err(match shared.explain(ask, now) {
                        RouteError::Overloaded(overload) => {
                            AcquireError::Busy { overload, position, wait }
                        }
                        error => AcquireError::Route(error),
                    });
                }
            };
            let end = turn_within(position, turn, until.saturating_sub(now)).await;
            now = shared.monitor.now();
            let waited = now.saturating_sub(started);
            let end = match end {
                Ok(mut assignment) => {
                    assignment.set_waited(waited);
                    return Ok(assignment);
                }
                Err(end) => end,
            };
            if end == WaitEnd::Moved {
                continue;
            }
            let retry_after = shared.refuse(ask, now);
            return Err(match end {
                WaitEnd::Expired => AcquireError::Expired { waited, retry_after },
                _ => AcquireError::Displaced { retry_after },
            });
        }
    }

    /// Reserves a slot whatever the thresholds say, for a dry run. Returns `None` when no upstream is left.
    pub fn route_anyway(&self, ask: &Ask<'_>) -> Option<Assignment> {
        let Shared { monitor, policy, rng } = &*self.shared;
        let now = monitor.now();
        let table = monitor.table();
        let pool = table.pool(ask.model);
        let view = PoolView::new(pool, ask, now);
        let index = match self.shared.named(ask) {
            Some(name) => pool.position(name).filter(|index| !view.is_excluded(*index)),
            None => policy.choose_anyway(&view, &ask.query(rng.next_u64(), now)),
        };
        index.map(|index| view.reserve_anyway(index))
    }

    /// Returns the refusal of a request whose model is unknown, when no upstream has room for any model.
    #[must_use]
    pub fn refusal(&self, ask: &Ask<'_>) -> RouteError {
        let Shared { monitor, policy, .. } = &*self.shared;
        let table = monitor.table();
        let now = monitor.now();
        policy.refuse(&PoolView::new(table.pool(ask.model), ask, now), ask.dry_run, now)
    }

    /// Returns `true` if any upstream has room, whatever the model. If not, and if requests may not wait, a
    /// request can be refused before its model is known.
    #[must_use]
    pub fn any_room(&self) -> bool {
        self.shared.monitor.table().any_room()
    }

    /// Returns the wait before a retry of a request for this model that is refused although its upstreams may have
    /// room: until the next turn among the clients that were refused and will return.
    pub fn retry_after(&self, model: Option<&str>) -> Duration {
        let monitor = &self.shared.monitor;
        monitor.table().pool(model).model.demand.refuse_with_slots(monitor.now())
    }
}

// === impl Shared ===

impl Shared {
    /// Reserves a slot unless a request that comes first waits. Fails with `None` if the upstreams are busy and
    /// the reason is not known yet: most requests wait then, and need none ([`explain`](Self::explain)).
    fn search(
        &self,
        ask: &Ask<'_>,
        draw: u64,
        now: Duration,
    ) -> Result<Assignment, Option<RouteError>> {
        let table = self.monitor.table();
        let pool = table.pool(ask.model);
        let queue = &pool.model.queue;
        let is_first = !queue.comes_before(ask.priority);
        let has_room = is_first && RoutingPolicy::has_room(&pool.availability);
        let is_plain = ask.not.is_empty() && self.named(ask).is_none();
        if !has_room && is_plain && RoutingPolicy::is_ready(&pool.availability) {
            return Err(None);
        }
        if is_first {
            let assignment = self.route_in(&mut PoolView::new(pool, ask, now), draw)?;
            // After the slot is taken: see the queue.
            fence(Ordering::SeqCst);
            if !queue.comes_before(ask.priority) {
                return Ok(assignment);
            }
            assignment.give_back();
        }
        Err(Some(self.explain_in(pool, ask, now)))
    }

    /// Explains, and counts, why no upstream takes this request now.
    fn explain(&self, ask: &Ask<'_>, now: Duration) -> RouteError {
        self.explain_in(self.monitor.table().pool(ask.model), ask, now)
    }

    fn explain_in(&self, pool: &Pool, ask: &Ask<'_>, now: Duration) -> RouteError {
        let view = PoolView::new(pool, ask, now);
        // A request that was tried everywhere has nothing to wait for.
        match (0..pool.members.len()).all(|index| view.is_excluded(index)) {
            true if !pool.members.is_empty() => RouteError::Exhausted,
            _ => self.policy.refuse(&view, ask.dry_run, now),
        }
    }

    fn route_in(&self, view: &mut PoolView<'_>, draw: u64) -> Result<Assignment, RouteError> {
        let query = view.ask.query(draw, view.now);
        match self.named(view.ask) {
            Some(name) => self.policy.route_to(view, view.pool.position(name), &query),
            None => self.policy.route(view, &query),
        }
    }

    /// Offers a slot to a request that waits, whose turn it is. With the slot it returns `true` if that was the
    /// last.
    fn offer(&self, ask: &OwnedAsk, pass: &mut Pass, now: Duration) -> Offer<(Assignment, bool)> {
        let ask = ask.ask();
        let table = self.monitor.table();
        let pool = table.pool(ask.model);
        if table.is_full(pool) {
            return Offer::NoSlot;
        }
        let mut view = PoolView { pass: Some(pass), ..PoolView::new(pool, &ask, now) };
        if let Ok(assignment) = self.route_in(&mut view, self.rng.next_u64()) {
            return Offer::Taken((assignment, table.is_full(pool)));
        }
        let PoolView { too_small, .. } = view;
        let (named, widest) = (self.named(&ask), table.widest(pool));
        let takes_all = named.is_none() && std::ptr::eq(widest, &**pool);
        let is_member = |id: UpstreamId| {
            let mut members = pool.members.iter().filter(|member| member.id() == id);
            members.any(|member| named.is_none_or(|name| name == member.name()))
        };
        let can_use = |id: UpstreamId| {
            !ask.not.contains(&id) && !too_small.contains(&id) && (takes_all || is_member(id))
        };
        match pass.go_on(widest.members.iter().map(|member| member.id()), can_use) {
            true if !table.is_full(pool) => Offer::NotForThis,
            _ => Offer::NoSlot,
        }
    }

    fn arrive(
        self: &Arc<Self>,
        ask: &Ask<'_>,
        until: Duration,
        now: Duration,
    ) -> Result<(Position, oneshot::Receiver<Turn>), NotQueued<()>> {
        let table = self.monitor.table();
        let pool = table.pool(ask.model);
        let model = &pool.model;
        let (sender, turn) = oneshot::channel();
        let waiter = RoutedWaiter {
            router: Arc::clone(self),
            ask: ask.into_owned(),
            slot: Cell::new(None),
            turn: sender,
        };
        let arrival = Arrival {
            priority: ask.priority,
            flow: ask.flow,
            weight: ask.weight,
            cost: u32::try_from(ask.charge.prefill_tokens).unwrap_or(u32::MAX),
            bytes: size_of::<RoutedWaiter>() as u64,
            until,
            had_turn: !ask.not.is_empty(),
            item: Box::new(waiter) as Box<dyn Waiter>,
        };
        // The table may have been replaced since it was read, and the queue served by then.
        let has_room = || {
            let table = self.monitor.table();
            !table.is_full(table.pool(ask.model))
        };
        let position = model.queue.arrive(arrival, model.demand.in_flight(), has_room, now)?;
        if !Arc::ptr_eq(&self.monitor.table().pool(ask.model).model, model) {
            model.queue.move_all();
        }
        Ok((position, turn))
    }

    /// Counts the refusal of a request that does not wait any more, and returns the wait before its retry.
    fn refuse(&self, ask: &Ask<'_>, now: Duration) -> Duration {
        let table = self.monitor.table();
        let demand = &table.pool(ask.model).model.demand;
        if ask.dry_run { demand.advice(now) } else { demand.refuse(now) }
    }

    /// Returns the upstream that the request names, if requests are routed by name.
    fn named<'a>(&self, ask: &Ask<'a>) -> Option<&'a str> {
        ask.direct.filter(|_| self.policy.pick() == Pick::Direct)
    }
}

/// Waits for a request's turn, for at most this time. Dropping the future leaves the queue.
async fn turn_within(
    position: Position,
    mut turn: oneshot::Receiver<Turn>,
    wait_max: Duration,
) -> Turn {
    let ended = match timeout(wait_max, &mut turn).await {
        Ok(ended) => {
            position.forget();
            ended
        }
        Err(Elapsed) if position.expire() => return Err(WaitEnd::Expired),
        // Its turn came at the same moment, and is being sent.
        Err(Elapsed) => turn.await,
    };
    ended.unwrap_or(Err(WaitEnd::Displaced))
}

// === impl RoutedWaiter ===

impl Waiter for RoutedWaiter {
    fn offer(&self, pass: &mut Pass, now: Duration) -> Offer<bool> {
        match self.router.offer(&self.ask, pass, now) {
            Offer::Taken((assignment, is_full)) => {
                self.slot.set(Some(assignment));
                Offer::Taken(is_full)
            }
            Offer::NotForThis => Offer::NotForThis,
            Offer::NoSlot => Offer::NoSlot,
        }
    }

    fn end(self: Box<Self>, end: WaitEnd) {
        let turn = self.slot.take().ok_or(end);
        // A request that has left wants no turn: its slot, if it has one, is released here.
        drop(self.turn.send(turn));
    }
}

impl fmt::Debug for RoutedWaiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoutedWaiter").field("ask", &self.ask).finish_non_exhaustive()
    }
}

// === impl Pool ===

impl Pool {
    fn position(&self, name: &str) -> Option<usize> {
        self.members.iter().position(|upstream| upstream.name() == name)
    }
}

// === impl Ask ===

impl Ask<'_> {
    fn query(&self, draw: u64, now: Duration) -> RouteQuery {
        RouteQuery { dry_run: self.dry_run, draw, now }
    }
}
