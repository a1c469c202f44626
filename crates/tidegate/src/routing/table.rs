use super::model::{ANY_MODEL, Model};
use super::pool::Pool;
use super::upstream::{Membership, Upstream};
use super::upstream_id::UpstreamId;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidegate_core::routing::{Availability, RoutingPolicy, Threshold};

/// The upstreams of every model at one moment. Replaced as a whole on a change; readers keep the one they loaded.
#[derive(Debug)]
pub(super) struct Table {
    pub upstreams: BTreeMap<UpstreamId, Arc<Upstream>>,
    pub models: BTreeMap<Arc<str>, Arc<Model>>,
    /// All upstreams, for requests that name no model.
    all: Arc<Pool>,
    /// For models that no upstream is known to serve: the upstreams that may serve any model, or all.
    open: Arc<Pool>,
    by_model: BTreeMap<Arc<str>, Arc<Pool>>,
    /// True if requests for different models go to different upstreams.
    several: bool,
}

/// The models that an upstream is known to serve, if that is known.
type Serves<'a> = Option<&'a Vec<Arc<str>>>;

// === impl Table ===

impl Table {
    /// Forms the pools of these upstreams. `models` has at least [`ANY_MODEL`] and all that the upstreams name.
    pub fn new(
        upstreams: BTreeMap<UpstreamId, Arc<Upstream>>,
        models: BTreeMap<Arc<str>, Arc<Model>>,
        any: &Arc<Model>,
    ) -> Self {
        let serves: Vec<_> =
            upstreams.values().map(|upstream| (upstream, upstream.models())).collect();
        let pool = |model: &Arc<Model>, takes: &dyn Fn(Serves<'_>) -> bool| {
            let members = serves.iter().filter(|(_, models)| takes(models.as_ref()));
            let members: Vec<_> = members.map(|(upstream, _)| Arc::clone(upstream)).collect();
            let availability = Arc::new(Availability::new(members.len()));
            Arc::new(Pool { members, model: Arc::clone(model), availability })
        };
        let all = pool(any, &|_| true);
        // Each pool of an upstream is updated with every request: two with the same members are one.
        let open = match pool(any, &|models| models.is_none()) {
            none_or_all if [0, all.members.len()].contains(&none_or_all.members.len()) => {
                Arc::clone(&all)
            }
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
        let table = Self { upstreams, models, all, open, by_model, several };
        table.join_all();
        table
    }

    /// Returns the pool for a request of this model.
    pub fn pool(&self, model: Option<&str>) -> &Arc<Pool> {
        match model {
            Some(name) => self.by_model.get(name).unwrap_or(&self.open),
            None if !self.several => self.by_model.values().next().unwrap_or(&self.all),
            None => &self.all,
        }
    }

    /// Returns `true` if the model that a request names makes a difference.
    pub fn needs_model(&self) -> bool {
        self.several
    }

    /// Returns `true` if any pool has room for a request. If not, its model need not be known.
    pub fn any_room(&self) -> bool {
        let takes = |pool: &Pool| RoutingPolicy::has_room(&pool.availability);
        if !self.several {
            return takes(self.pool(None));
        }
        let mut pools = self.by_model.values().chain([&self.all, &self.open]);
        pools.any(|pool| !pool.members.is_empty() && takes(pool))
    }

    /// Returns `true` if no request that waits beside one of this pool could find room: one queue may serve two
    /// pools, one of which is a part of all upstreams.
    pub fn is_full(&self, pool: &Pool) -> bool {
        !RoutingPolicy::has_room(&self.widest(pool).availability)
    }

    /// Returns the largest pool whose requests wait in the same queue.
    pub fn widest<'a>(&'a self, pool: &'a Pool) -> &'a Pool {
        if Arc::ptr_eq(&pool.model, &self.all.model) { &self.all } else { pool }
    }

    /// Returns the pools by model, and the pool of [`ANY_MODEL`] if requests come to it. With one model these
    /// are only requests for models that nobody serves; it is then listed if it has thresholds of its own, so
    /// that they are seen and can be reset.
    pub fn pools(&self) -> impl Iterator<Item = &Arc<Pool>> {
        let any = self.by_model.is_empty() || self.several || self.all.model.was_changed();
        self.by_model.values().chain(any.then_some(&self.all))
    }

    /// Returns the thresholds of an upstream's pools that can't be checked, because it does not report what they
    /// need.
    pub fn thresholds_without_data(&self, upstream: &Upstream) -> Vec<Threshold> {
        let has_it = |pool: &&Arc<Pool>| pool.members.iter().any(|one| one.id() == upstream.id());
        let mut missing: Vec<_> = self
            .pools()
            .filter(has_it)
            .filter_map(|pool| {
                let thresholds = pool.model.thresholds();
                upstream.with_account(|account| account.load().without_data(&thresholds))
            })
            .collect();
        missing.sort_unstable();
        missing.dedup();
        missing
    }

    /// Gives each upstream its entries in the pools that it belongs to.
    fn join_all(&self) {
        let mut joined: BTreeMap<UpstreamId, Vec<_>> = BTreeMap::new();
        let mut pools = vec![&self.all];
        if !Arc::ptr_eq(&self.open, &self.all) {
            pools.push(&self.open);
        }
        pools.extend(self.by_model.values());
        for pool in pools {
            for (index, upstream) in pool.members.iter().enumerate() {
                let membership = Membership::new(&pool.availability, &pool.model, index);
                joined.entry(upstream.id()).or_default().push(membership);
            }
        }
        for (id, upstream) in &self.upstreams {
            upstream.join(joined.remove(id).unwrap_or_default());
        }
    }
}
