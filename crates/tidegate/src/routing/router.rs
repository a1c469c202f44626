use super::error::{Overload, RouteError};
use super::model::Model;
use super::monitor::WorkerMonitor;
use super::table::{Pool, PoolNow};
use super::worker::{Worker, WorkerId};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tidegate_core::admission::{MessagePriority, Spread};
use tidegate_core::routing::{Answer, Charge, FreeSet, Pick, Standing, Threshold, Ticket};

/// Sends each request to a worker that has room, or refuses when none has.
///
/// A place is taken in the same step in which it is found free: of many requests at once, exactly as many get
/// through as there are places.
///
/// ```
/// use std::sync::Arc;
/// use tidegate::routing::*;
///
/// let monitor = Arc::new(WorkerMonitor::new(MonitorConfig {
///     thresholds: BusyThresholds { active_requests: Some(1), ..BusyThresholds::OFF },
///     ..MonitorConfig::default()
/// }));
/// monitor.add_worker("10.0.0.7:8000", None);
/// let router = PushRouter::new(monitor, Pick::PowerOfTwo);
///
/// let first = router.route(&Ask::default(), 7)?;
/// assert_eq!(first.worker().name(), "10.0.0.7:8000");
/// let refused = router.route(&Ask::default(), 8).unwrap_err();
/// assert!(matches!(refused, RouteError::Overloaded(Overload { busy: 1, total: 1, .. })));
/// drop(first);
/// assert!(router.route(&Ask::default(), 9).is_ok());
/// # Ok::<(), RouteError>(())
/// ```
#[derive(Debug)]
pub struct PushRouter {
    monitor: Arc<WorkerMonitor>,
    pick: Pick,
    turn: AtomicU64,
    spread: Spread,
}

/// What a request needs of a worker.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The model it names. `None`: any worker will do.
    pub model: Option<&'a str>,
    /// Its priority. Low leaves some room for the others, and Normal for High while that asks.
    pub priority: MessagePriority,
    /// What it will cost.
    pub charge: Charge,
    /// The worker it names, for [`Pick::Direct`].
    pub direct: Option<&'a str>,
    /// Workers that are out of the question: they were tried.
    pub not: &'a [WorkerId],
    /// Whether a refusal will not be followed, and so is not counted.
    pub dry_run: bool,
}

/// A request's place at a worker. Ends when it is dropped.
#[derive(Debug)]
#[must_use = "the place is given back when this is dropped"]
pub struct Assignment {
    worker: Arc<Worker>,
    model: Arc<Model>,
    rank: usize,
    /// Taken when the place is given back.
    ticket: Option<Ticket>,
    prefilled: bool,
}

// === impl PushRouter ===

impl PushRouter {
    /// A router over these workers.
    #[must_use]
    pub fn new(monitor: Arc<WorkerMonitor>, pick: Pick) -> Self {
        Self { monitor, pick, turn: AtomicU64::new(0), spread: Spread::default() }
    }

    /// The monitor whose workers it picks from.
    #[must_use]
    pub fn monitor(&self) -> &Arc<WorkerMonitor> {
        &self.monitor
    }

    /// A place for this request, with one random number.
    ///
    /// When no worker at all can be reached, one is tried all the same: an honest failure from it is worth more
    /// than a guess.
    ///
    /// # Errors
    ///
    /// When all workers are busy, none is there, or all were excluded. Nothing was charged.
    pub fn route(&self, ask: &Ask<'_>, chance: u64) -> Result<Assignment, RouteError> {
        self.route_at(ask, chance, self.monitor.now())
    }

    /// As [`route`](Self::route), at a time of the caller's.
    ///
    /// # Errors
    ///
    /// As [`route`](Self::route).
    pub fn route_at(
        &self,
        ask: &Ask<'_>,
        chance: u64,
        now: Duration,
    ) -> Result<Assignment, RouteError> {
        let table = self.monitor.table();
        let pool = table.pool(ask.model);
        let ask = &Ask { priority: pool.board.model.judge(ask.priority, now), ..*ask };
        if let (Pick::Direct, Some(name)) = (self.pick, ask.direct) {
            return self.route_to(pool, name, ask);
        }
        let free = pool.board.free(ask.priority);
        if let Some(place) = self.choose(pool, free, chance, now, ask)
            && let Some(assignment) = take(pool, place, ask)
        {
            return Ok(assignment);
        }
        // The chosen one was full by then, or too small for this one, or tried. Look at all that are left.
        let start = chance as usize % pool.members.len().max(1);
        let places = free.iter().filter(|place| *place >= start);
        for place in places.chain(free.iter().filter(|place| *place < start)) {
            if let Some(assignment) = take(pool, place, ask) {
                return Ok(assignment);
            }
        }
        self.last_resort(pool, ask, chance)
    }

    /// A place whatever the thresholds say, for a dry run. `None` when nobody is left.
    pub fn route_anyway(&self, ask: &Ask<'_>, chance: u64) -> Option<Assignment> {
        let now = self.monitor.now();
        let table = self.monitor.table();
        let pool = table.pool(ask.model);
        let left = |place: &usize| !ask.excludes(&pool.members[*place]);
        let named = ask.direct.filter(|_| self.pick == Pick::Direct);
        let place = match named {
            Some(name) => pool.members.iter().position(|worker| worker.name() == name),
            // Nobody has room, so the fewest requests are nobody's; the better of two is as good.
            None => {
                let candidates = PoolNow { pool, now, priority: ask.priority };
                let two = Pick::PowerOfTwo.choose(pool.board.up(), &candidates, chance, 0);
                two.filter(left).or_else(|| pool.board.up().iter().find(left))
            }
        };
        place.filter(left).map(|place| take_anyway(pool, place, ask))
    }

    /// The refusal of a request whose model is not known, when nobody has room for any.
    #[must_use]
    pub fn refusal(&self, ask: &Ask<'_>) -> RouteError {
        let table = self.monitor.table();
        self.refuse(table.pool(ask.model), ask)
    }

    /// Whether a request of this priority could be sent to anyone at all, whatever its model. When not, it can be
    /// refused before its model is known.
    #[must_use]
    pub fn any_room(&self, priority: MessagePriority) -> bool {
        self.monitor.table().any_room(priority, self.monitor.now())
    }

    fn choose(
        &self,
        pool: &Pool,
        among: &FreeSet,
        chance: u64,
        now: Duration,
        ask: &Ask<'_>,
    ) -> Option<usize> {
        let turn = match self.pick {
            Pick::RoundRobin => self.turn.fetch_add(1, Ordering::Relaxed),
            _ => 0,
        };
        let place = self.pick.choose(
            among,
            &PoolNow { pool, now, priority: ask.priority },
            chance,
            turn,
        )?;
        let worker = pool.members.get(place)?;
        (!ask.excludes(worker)).then_some(place)
    }

    fn route_to(
        &self,
        pool: &Arc<Pool>,
        name: &str,
        ask: &Ask<'_>,
    ) -> Result<Assignment, RouteError> {
        let named = pool.members.iter().position(|worker| worker.name() == name);
        let place = named.ok_or(RouteError::UnknownWorker)?;
        if ask.excludes(&pool.members[place]) {
            return Err(RouteError::Exhausted);
        }
        take(pool, place, ask).ok_or_else(|| {
            pool.board.model.count_refusal(ask);
            RouteError::Overloaded(Overload {
                busy: 1,
                total: 1,
                threshold: threshold_of(pool.board.standing(place)),
                retry_after: self.spread(&pool.board.model),
            })
        })
    }

    /// Nobody has room: someone who is down, when nobody is up; otherwise a refusal that says why.
    fn last_resort(
        &self,
        pool: &Arc<Pool>,
        ask: &Ask<'_>,
        chance: u64,
    ) -> Result<Assignment, RouteError> {
        let left = |place: &usize| !ask.excludes(&pool.members[*place]);
        let board = &pool.board;
        if board.up().iter().any(|place| left(&place)) {
            return Err(self.refuse(pool, ask));
        }
        let down: Vec<_> = (0..pool.members.len()).filter(left).collect();
        if !down.is_empty() {
            // What is down is not without limits: when it comes back it has all that was sent there.
            let start = chance as usize % down.len();
            let in_turn = (0..down.len()).map(|step| down[(start + step) % down.len()]);
            let taken = in_turn.into_iter().find_map(|place| take(pool, place, ask));
            return taken.ok_or_else(|| self.refuse(pool, ask));
        }
        if !pool.members.is_empty() {
            return Err(RouteError::Exhausted);
        }
        board.model.count_refusal(ask);
        Err(RouteError::NoWorkers { total: 0, starting: 0 })
    }

    /// Nobody took it: those that are up and ready are busy for this request, whatever they are for a smaller one.
    fn refuse(&self, pool: &Pool, ask: &Ask<'_>) -> RouteError {
        let board = &pool.board;
        board.model.count_refusal(ask);
        let by = |threshold: &Threshold| board.count(Standing::Busy(*threshold));
        let starting = board.count(Standing::NotReady);
        let total = pool.members.len();
        let busy = match board.up().len() {
            0 => total,
            up => up.saturating_sub(starting),
        };
        if busy == 0 {
            return RouteError::NoWorkers { total, starting };
        }
        let threshold = Threshold::ALL.into_iter().max_by_key(by).filter(|most| by(most) > 0);
        let retry_after = self.spread(&board.model);
        RouteError::Overloaded(Overload { busy, total, threshold, retry_after })
    }

    /// When to come back for a request of this model: from how fast requests end, spread so that those who are
    /// refused together do not return together.
    #[must_use]
    pub fn retry_after(&self, model: Option<&str>) -> Duration {
        self.spread(&self.monitor.table().pool(model).board.model)
    }

    fn spread(&self, model: &Model) -> Duration {
        self.monitor.retry().spread(model.advice(), self.spread.next())
    }
}

fn threshold_of(standing: Standing) -> Option<Threshold> {
    match standing {
        Standing::Busy(threshold) => Some(threshold),
        Standing::Free | Standing::Silent | Standing::NotReady => None,
    }
}

fn take(pool: &Arc<Pool>, place: usize, ask: &Ask<'_>) -> Option<Assignment> {
    let worker = pool.members.get(place).filter(|worker| !ask.excludes(worker))?;
    let model = &pool.board.model;
    let ticket = worker.try_charge(ask.charge, model, ask.priority).ok()?;
    Some(Assignment::new(worker, model, ticket))
}

fn take_anyway(pool: &Arc<Pool>, place: usize, ask: &Ask<'_>) -> Assignment {
    let worker = &pool.members[place];
    Assignment::new(worker, &pool.board.model, worker.charge_anyway(ask.charge))
}

// === impl Model ===

impl Model {
    fn count_refusal(&self, ask: &Ask<'_>) {
        if !ask.dry_run {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
    }
}

// === impl Ask ===

impl Ask<'_> {
    fn excludes(&self, worker: &Worker) -> bool {
        self.not.contains(&worker.id())
    }
}

impl Default for Ask<'_> {
    fn default() -> Self {
        Self {
            model: None,
            priority: MessagePriority::Normal,
            charge: Charge::LEAST,
            direct: None,
            not: &[],
            dry_run: false,
        }
    }
}

// === impl Assignment ===

impl Assignment {
    fn new(worker: &Arc<Worker>, model: &Arc<Model>, ticket: Ticket) -> Self {
        model.held.fetch_add(1, Ordering::Relaxed);
        Self {
            worker: Arc::clone(worker),
            model: Arc::clone(model),
            rank: ticket.rank(),
            ticket: Some(ticket),
            prefilled: false,
        }
    }

    /// Where the request goes.
    #[must_use]
    pub fn worker(&self) -> &Worker {
        &self.worker
    }

    /// The rank that it was charged to.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The worker refused, could not be reached, or began to answer: what that says about its speed.
    pub fn answered(&self, answer: Answer, now: Duration) {
        self.worker.observe(answer, now);
    }

    /// The request went out as a whole at `now`. Until then no report of the worker can have it, however late.
    pub fn sent(&mut self, now: Duration) {
        if let Some(ticket) = &mut self.ticket {
            self.worker.sent(ticket, now);
        }
    }

    /// The first piece of the answer is here: nothing of the request is prefilled any more.
    pub fn prefilled(&mut self) {
        if !self.prefilled
            && let Some(ticket) = &mut self.ticket
        {
            self.worker.prefilled(ticket);
            self.prefilled = true;
        }
    }
}

impl Drop for Assignment {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.worker.release(ticket);
        }
        self.model.held.fetch_sub(1, Ordering::Relaxed);
        self.model.ended.fetch_add(1, Ordering::Relaxed);
    }
}
