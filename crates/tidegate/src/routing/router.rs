use super::ask::Ask;
use super::assignment::Assignment;
use super::monitor::WorkerMonitor;
use super::pool::{Pool, PoolView};
use crate::rng::Rng;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::admission::MessagePriority;
use tidegate_core::routing::{Pick, Pool as _, RouteError, RouteQuery, RoutingPolicy};

/// Sends each request to an upstream that has room, or refuses when none has.
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
    monitor: Arc<WorkerMonitor>,
    policy: RoutingPolicy,
    rng: Rng,
}

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
        let policy = RoutingPolicy::new(pick, monitor.retry());
        Self { monitor, policy, rng }
    }

    /// Returns the monitor of the upstreams.
    #[must_use]
    pub fn monitor(&self) -> &Arc<WorkerMonitor> {
        &self.monitor
    }

    /// Reserves a slot for this request at an upstream that has room.
    ///
    /// When no upstream can be reached, one that is down is tried: its failure tells the client more than a guess.
    ///
    /// # Errors
    ///
    /// When all upstreams are busy, there is none, or all are excluded. Nothing is reserved.
    pub fn route(&self, ask: &Ask<'_>) -> Result<Assignment, RouteError> {
        self.route_at(ask, self.rng.next_u64(), self.monitor.now())
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
        let table = self.monitor.table();
        let pool = table.pool(ask.model);
        let view = &mut PoolView { pool, ask, now };
        let query = ask.query(draw, now);
        match self.named(ask) {
            Some(name) => self.policy.route_to(view, pool.position(name), &query),
            None => self.policy.route(view, &query),
        }
    }

    /// Reserves a slot whatever the thresholds say, for a dry run. Returns `None` when no upstream is left.
    pub fn route_anyway(&self, ask: &Ask<'_>) -> Option<Assignment> {
        let now = self.monitor.now();
        let table = self.monitor.table();
        let pool = table.pool(ask.model);
        let view = PoolView { pool, ask, now };
        let index = match self.named(ask) {
            Some(name) => pool.position(name).filter(|index| !view.is_excluded(*index)),
            None => self.policy.choose_anyway(&view, &ask.query(self.rng.next_u64(), now)),
        };
        index.map(|index| view.reserve_anyway(index))
    }

    /// Returns the refusal of a request whose model is unknown, when no upstream has room for any model.
    #[must_use]
    pub fn refusal(&self, ask: &Ask<'_>) -> RouteError {
        let table = self.monitor.table();
        let view = PoolView { pool: table.pool(ask.model), ask, now: self.monitor.now() };
        self.policy.refuse(&view, ask.dry_run)
    }

    /// Returns `true` if any upstream has room for a request of this priority, whatever its model. If not, the
    /// request can be refused before its model is known.
    #[must_use]
    pub fn any_room(&self, priority: MessagePriority) -> bool {
        self.monitor.table().any_room(priority, self.monitor.now())
    }

    /// Returns the wait before a retry of a request for this model: from the rate at which requests end, spread so
    /// that clients that are refused together do not return together.
    #[must_use]
    pub fn retry_after(&self, model: Option<&str>) -> Duration {
        self.policy.retry_after(&self.monitor.table().pool(model).model.demand)
    }

    /// Returns the upstream that the request names, if requests are routed by name.
    fn named<'a>(&self, ask: &Ask<'a>) -> Option<&'a str> {
        ask.direct.filter(|_| self.policy.pick() == Pick::Direct)
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
        RouteQuery { priority: self.priority, dry_run: self.dry_run, draw, now }
    }
}
