use super::model::{ANY_MODEL, Board, Model};
use super::worker::{Worker, WorkerId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::admission::MessagePriority;
use tidegate_core::routing::{Candidates, Loads};

/// Who serves what, at one moment. Replaced as a whole when that changes; readers keep the one they loaded.
#[derive(Debug)]
pub(super) struct Table {
    pub workers: BTreeMap<WorkerId, Arc<Worker>>,
    pub models: BTreeMap<Arc<str>, Arc<Model>>,
    /// Everybody, for requests that name no model.
    all: Arc<Pool>,
    /// For models that nobody is known to serve: those that may serve anything, or everybody.
    open: Arc<Pool>,
    by_model: BTreeMap<Arc<str>, Arc<Pool>>,
    /// Whether requests for different models go to different workers.
    several: bool,
}

/// The models that a worker is known to serve, if that is known.
type Serves<'a> = Option<&'a Vec<Arc<str>>>;

/// The workers of one model.
#[derive(Debug)]
pub(super) struct Pool {
    pub members: Vec<Arc<Worker>>,
    pub board: Arc<Board>,
}

/// A pool at one moment, for a pick.
pub(super) struct PoolNow<'a> {
    pub pool: &'a Pool,
    pub now: Duration,
    pub priority: MessagePriority,
}

// === impl Table ===

impl Table {
    /// Seats these workers. `models` has at least [`ANY_MODEL`] and all that the workers name.
    pub fn new(
        workers: BTreeMap<WorkerId, Arc<Worker>>,
        models: BTreeMap<Arc<str>, Arc<Model>>,
        any: &Arc<Model>,
    ) -> Self {
        let serves: Vec<_> = workers.values().map(|worker| (worker, worker.models())).collect();
        let pool = |model: &Arc<Model>, takes: &dyn Fn(Serves<'_>) -> bool| {
            let members = serves.iter().filter(|(_, models)| takes(models.as_ref()));
            let members: Vec<_> = members.map(|(worker, _)| Arc::clone(worker)).collect();
            let board = Arc::new(Board::new(Arc::clone(model), members.len()));
            Arc::new(Pool { members, board })
        };
        let all = pool(any, &|_| true);
        let open = match pool(any, &|models| models.is_none()) {
            none if none.members.is_empty() => Arc::clone(&all),
            some => some,
        };
        let named = models.iter().filter(|(name, _)| &***name != ANY_MODEL);
        let by_model: BTreeMap<_, _> = named
            .map(|(name, model)| {
                let takes = |models: Serves<'_>| models.is_none_or(|models| models.contains(name));
                (Arc::clone(name), pool(model, &takes))
            })
            .collect();
        let several = by_model.len() > 1
            || by_model.values().any(|pool| pool.members.len() < all.members.len());
        let table = Self { workers, models, all, open, by_model, several };
        table.seat();
        table
    }

    /// The pool for a request, and its model's name where that matters.
    pub fn pool(&self, model: Option<&str>) -> &Arc<Pool> {
        match model {
            Some(name) => self.by_model.get(name).unwrap_or(&self.open),
            None if !self.several => self.by_model.values().next().unwrap_or(&self.all),
            None => &self.all,
        }
    }

    /// Whether it makes a difference which model a request names.
    pub fn needs_model(&self) -> bool {
        self.several
    }

    /// Whether a request could be sent to someone, whatever its model. If not, it need not be known.
    pub fn any_room(&self, priority: MessagePriority, now: Duration) -> bool {
        // Where all are down, one is asked all the same.
        let takes = |pool: &Pool| {
            let judged = pool.board.model.judge(priority, now);
            !pool.board.free(judged).is_empty() || pool.board.up().is_empty()
        };
        if !self.several {
            return takes(self.pool(None));
        }
        let mut pools = self.by_model.values().chain([&self.all, &self.open]);
        pools.any(|pool| !pool.members.is_empty() && takes(pool))
    }

    /// The pools of models by name, and [`ANY_MODEL`]'s where requests come to that.
    pub fn pools(&self) -> impl Iterator<Item = &Arc<Pool>> {
        let any = self.by_model.is_empty() || self.several;
        self.by_model.values().chain(any.then_some(&self.all))
    }

    fn seat(&self) {
        let mut seats: BTreeMap<WorkerId, Vec<_>> = BTreeMap::new();
        let mut pools = vec![&self.all];
        if !Arc::ptr_eq(&self.open, &self.all) {
            pools.push(&self.open);
        }
        pools.extend(self.by_model.values());
        for pool in pools {
            for (place, worker) in pool.members.iter().enumerate() {
                seats.entry(worker.id()).or_default().push((Arc::clone(&pool.board), place));
            }
        }
        for (id, worker) in &self.workers {
            worker.sit(seats.remove(id).unwrap_or_default());
        }
    }
}

// === impl PoolNow ===

impl Candidates for PoolNow<'_> {
    fn cost(&self, number: usize) -> u64 {
        self.pool.members.get(number).map_or(u64::MAX, |worker| worker.cost(self.now))
    }

    fn loads(&self) -> &Loads {
        self.pool.board.loads(self.priority)
    }
}
