use super::model::{ANY_MODEL, Model};
use super::own_delay::OwnDelay;
use super::stats::{ModelStats, UpstreamLoad};
use super::sync::{self, ArcSwap, Guard, Mutex, MutexGuard};
use super::table::Table;
use super::upstream::Upstream;
use super::upstream_id::UpstreamId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidegate_core::admission::RetryBounds;
use tidegate_core::queue::PoolQueueConfig;
use tidegate_core::routing::{
    BusyThresholds, LoadReport, OnSilence, ServiceEstimator, Threshold, UpstreamLimit,
};
use tokio::sync::Notify;

/// The configuration of a [`WorkerMonitor`].
#[derive(Clone, Debug, PartialEq)]
pub struct MonitorConfig {
    /// Thresholds of models that have none of their own. Default off.
    pub thresholds: BusyThresholds,
    /// Thresholds by model, in place of the above. Default none.
    pub by_model: BTreeMap<String, BusyThresholds>,
    /// The age at which a load report expires. Default 5 s.
    pub report_ttl: Duration,
    /// The treatment of upstreams without a valid report. Default free.
    pub on_silence: OnSilence,
    /// The concurrency limit of each upstream. Default none.
    pub limit: UpstreamLimit,
    /// The queue of each model.
    pub queue: PoolQueueConfig,
    /// The shortest and the longest retry advice.
    pub retry: RetryBounds,
    /// The most models; further models of upstreams are ignored. Default 1,024.
    pub models_max: usize,
}

/// Keeps the last load of every upstream and rank, and the set of busy upstreams.
///
/// Shared by all threads. Routing reads it without a lock; reports, thresholds and the set of upstreams can change
/// at any time and take effect at once. Call [`tick`](Self::tick) a few times a second, or run
/// [`watch`](Self::watch): only then do reports expire and retry advice follow the load.
///
/// ```
/// use tidegate::routing::{BusyThresholds, LoadReport, MonitorConfig, WorkerMonitor};
///
/// let monitor = WorkerMonitor::new(MonitorConfig {
///     thresholds: BusyThresholds { active_decode_blocks: Some(0.85), ..BusyThresholds::OFF },
///     ..MonitorConfig::default()
/// });
/// let upstream = monitor.add_upstream("10.0.0.7:8000", None);
/// let report = LoadReport {
///     active_decode_blocks: Some(870),
///     kv_total_blocks: Some(1000),
///     ..LoadReport::default()
/// };
/// monitor.report(upstream, 0, report, monitor.now());
/// assert_eq!(monitor.models()[0].busy, 1);
/// ```
#[derive(Debug)]
pub struct WorkerMonitor {
    table: ArcSwap<Table>,
    config: MonitorConfig,
    started: Instant,
    own_delay: Arc<OwnDelay>,
    edits: Mutex<Edits>,
    changed: Notify,
}

/// State that changes only under the lock.
#[derive(Debug)]
struct Edits {
    any: Arc<Model>,
    next: usize,
    services: BTreeMap<Arc<str>, ServiceEstimator>,
}

/// An unknown model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownModel {
    /// The model that was asked for.
    pub model: String,
    /// The known models.
    pub known: Vec<String>,
}

// === impl MonitorConfig ===

impl Default for MonitorConfig {
    fn default() -> Self {
        Self {
            thresholds: BusyThresholds::OFF,
            by_model: BTreeMap::new(),
            report_ttl: Duration::from_secs(5),
            on_silence: OnSilence::Free,
            limit: UpstreamLimit::Off,
            queue: PoolQueueConfig::default(),
            retry: RetryBounds::default(),
            models_max: 1024,
        }
    }
}

// === impl WorkerMonitor ===

impl WorkerMonitor {
    /// Creates a monitor without upstreams, with the models of the configuration.
    #[must_use]
    pub fn new(config: MonitorConfig) -> Self {
        let model = |name: &str, thresholds| {
            Arc::new(Model::new(name, thresholds, config.queue, config.retry))
        };
        let any = model(ANY_MODEL, config.thresholds);
        let mut models = BTreeMap::from([(Arc::clone(&any.name), Arc::clone(&any))]);
        for (name, thresholds) in &config.by_model {
            let named = model(name, *thresholds);
            models.insert(Arc::clone(&named.name), named);
        }
        let table = Table::new(BTreeMap::new(), models, &any);
        Self {
            table: ArcSwap::from_pointee(table),
            started: sync::now(),
            own_delay: Arc::default(),
            edits: Mutex::new(Edits { any, next: 0, services: BTreeMap::new() }),
            changed: Notify::new(),
            config,
        }
    }

    /// Returns the time since the monitor was created, as its methods expect it.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.at(sync::now())
    }

    /// Returns the time of an instant, as its methods expect it. Zero for one before the monitor was created.
    #[must_use]
    pub fn at(&self, instant: Instant) -> Duration {
        instant.saturating_duration_since(self.started)
    }

    /// Adds an upstream that serves these models, or any if they are unknown. It counts as up at first.
    pub fn add_upstream(&self, name: &str, models: Option<&[String]>) -> UpstreamId {
        self.add_upstream_with_limit(name, models, self.config.limit)
    }

    /// Adds an upstream with a concurrency limit of its own.
    pub fn add_upstream_with_limit(
        &self,
        name: &str,
        models: Option<&[String]>,
        limit: UpstreamLimit,
    ) -> UpstreamId {
        let mut edits = self.edits();
        let id = UpstreamId(edits.next);
        edits.next += 1;
        let on_silence = self.config.on_silence;
        let (started, own_delay) = (self.started, &self.own_delay);
        let upstream = Arc::new(Upstream::new(id, name, on_silence, limit, started, own_delay));
        upstream.set_models(models.map(names));
        let mut upstreams = self.table.load().upstreams.clone();
        upstreams.insert(id, upstream);
        self.rebuild(&edits, upstreams);
        id
    }

    /// Removes an upstream. Requests in flight to it end normally.
    pub fn remove_upstream(&self, id: UpstreamId) {
        let edits = self.edits();
        let mut upstreams = self.table.load().upstreams.clone();
        if let Some(gone) = upstreams.remove(&id) {
            gone.join(Vec::new());
            self.rebuild(&edits, upstreams);
        }
    }

    /// Sets the models that an upstream serves, `None` for any. Cheap when nothing changes.
    pub fn set_models(&self, id: UpstreamId, models: Option<&[String]>) {
        let edits = self.edits();
        let table = self.table.load_full();
        if let Some(upstream) = table.upstreams.get(&id)
            && upstream.set_models(models.map(names))
        {
            self.rebuild(&edits, table.upstreams.clone());
        }
    }

    /// Marks an upstream as reachable or not. Returns `true` if that changed.
    pub fn set_up(&self, id: UpstreamId, up: bool) -> bool {
        self.upstream(id).is_some_and(|upstream| upstream.set_up(up))
    }

    /// Records the time that a thread of the caller just took from one look at its sockets to the next. A response
    /// waits as long to be noticed, which says nothing about its upstream: a limit that is found judges latencies
    /// without it.
    ///
    /// On a tokio runtime of one thread this is the time that [`yield_now`](tokio::task::yield_now) takes.
    pub fn record_own_delay(&self, delay: Duration) {
        self.own_delay.record(delay);
    }

    /// Records a load report of a rank made at `at`: for a scrape the time of the request, for a response
    /// header the time of arrival.
    pub fn report(&self, id: UpstreamId, rank: usize, report: LoadReport, at: Duration) {
        if let Some(upstream) = self.upstream(id) {
            upstream.record_report(rank, report, at);
        }
    }

    /// Returns the thresholds that are set and that an upstream can't be judged by, because it does not report
    /// what they need.
    #[must_use]
    pub fn thresholds_without_data(&self, id: UpstreamId) -> Vec<Threshold> {
        let table = self.table.load();
        let upstream = table.upstreams.get(&id);
        upstream.map(|upstream| table.thresholds_without_data(upstream)).unwrap_or_default()
    }

    /// Sets the ranks of an upstream, by the numbers in its reports.
    pub fn set_ranks(&self, id: UpstreamId, ranks: &[usize]) {
        if let Some(upstream) = self.upstream(id) {
            upstream.keep_ranks(ranks);
        }
    }

    /// Returns the thresholds of every model.
    #[must_use]
    pub fn thresholds(&self) -> Vec<(Arc<str>, BusyThresholds)> {
        let table = self.table.load();
        let models = table.pools().map(|pool| &pool.model);
        models.map(|model| (Arc::clone(&model.name), model.thresholds())).collect()
    }

    /// Returns the thresholds of one model.
    ///
    /// # Errors
    ///
    /// When no such model is known.
    pub fn thresholds_of(&self, model: &str) -> Result<BusyThresholds, UnknownModel> {
        Ok(find(&self.table.load(), model)?.thresholds())
    }

    /// Waits until some model's thresholds change.
    ///
    /// # Cancel safety
    ///
    /// Can be dropped at any time. A change between two calls is not seen by the second.
    pub async fn thresholds_changed(&self) {
        self.changed.notified().await;
    }

    /// Changes a model's thresholds, effective at once for all threads, and returns the new ones.
    ///
    /// # Errors
    ///
    /// When no such model is known. Nothing has changed.
    pub fn change_thresholds(
        &self,
        model: &str,
        change: impl FnOnce(BusyThresholds) -> BusyThresholds,
    ) -> Result<BusyThresholds, UnknownModel> {
        let _edits = self.edits();
        let table = self.table.load_full();
        let model = find(&table, model)?;
        let thresholds = change(model.thresholds());
        model.set_thresholds(thresholds);
        // All upstreams: the model of those that serve any model has more than one pool.
        table.upstreams.values().for_each(|upstream| upstream.refresh());
        self.changed.notify_waiters();
        Ok(thresholds)
    }

    /// Expires old reports, ends the rounds of limits that are found, and measures services for retry advice.
    /// Returns the upstreams whose reports expired just now.
    pub fn tick(&self, now: Duration) -> Vec<Arc<Upstream>> {
        let mut edits = self.edits();
        let table = self.table.load_full();
        let before = now.saturating_sub(self.config.report_ttl);
        let silent = table.upstreams.values().filter(|upstream| upstream.tick(now, before));
        let silent = silent.cloned().collect();
        edits.services.retain(|name, _| table.models.contains_key(name));
        for (name, model) in &table.models {
            let service = edits.services.entry(Arc::clone(name)).or_default();
            model.demand.observe(service, now);
        }
        silent
    }

    /// Ticks for ever, every `period`.
    ///
    /// # Cancel safety
    ///
    /// Can be dropped at any time.
    pub async fn watch(&self, period: Duration) {
        let mut ticks = tokio::time::interval(period);
        loop {
            ticks.tick().await;
            self.tick(self.now());
        }
    }

    /// Returns `true` if the model that a request names makes a difference. If not, it need not be read.
    #[must_use]
    pub fn needs_model(&self) -> bool {
        self.table.load().needs_model()
    }

    /// Returns a snapshot of every upstream.
    #[must_use]
    pub fn upstreams(&self) -> Vec<UpstreamLoad> {
        let (now, table) = (self.now(), self.table.load());
        let upstreams = table.upstreams.values();
        upstreams.map(|upstream| UpstreamLoad::of(upstream, &table, now)).collect()
    }

    /// Returns a snapshot of every model.
    #[must_use]
    pub fn models(&self) -> Vec<ModelStats> {
        let now = self.now();
        self.table.load().pools().map(|pool| ModelStats::of(pool, now)).collect()
    }

    pub(super) fn table(&self) -> Guard<Arc<Table>> {
        self.table.load()
    }

    fn upstream(&self, id: UpstreamId) -> Option<Arc<Upstream>> {
        self.table.load().upstreams.get(&id).cloned()
    }

    /// Forms all pools again. A model stays known while an upstream serves it, and for good if it was
    /// configured or its thresholds were changed; all within the bound.
    fn rebuild(&self, edits: &Edits, upstreams: BTreeMap<UpstreamId, Arc<Upstream>>) {
        let before = self.table.load_full();
        let mut models = before.models.clone();
        let served: BTreeSet<_> =
            upstreams.values().filter_map(|upstream| upstream.models()).flatten().collect();
        models.retain(|name, model| {
            let configured = &**name == ANY_MODEL || self.config.by_model.contains_key(&**name);
            configured || served.contains(name) || model.was_changed()
        });
        for name in served {
            if models.len() <= self.config.models_max && !models.contains_key(&name) {
                let thresholds = self.config.thresholds;
                let (queue, retry) = (self.config.queue, self.config.retry);
                let model = Model::new(&name, thresholds, queue, retry);
                models.insert(name, Arc::new(model));
            }
        }
        let table = Arc::new(Table::new(upstreams, models, &edits.any));
        self.table.store(Arc::clone(&table));
        let is_gone = |name: &Arc<str>| !table.models.contains_key(name);
        for (_, model) in before.models.iter().filter(|(name, _)| is_gone(name)) {
            model.queue.move_all();
        }
        // Requests without a model may have waited in the queue of the only one.
        let any = &before.pool(None).model;
        if !Arc::ptr_eq(any, &table.pool(None).model) {
            any.queue.move_all();
        }
        let now = self.now();
        table.models.values().for_each(|model| model.queue.serve(now));
    }

    fn edits(&self) -> MutexGuard<'_, Edits> {
        sync::lock(&self.edits)
    }
}

fn find<'a>(table: &'a Table, model: &str) -> Result<&'a Model, UnknownModel> {
    let found = table.pools().find(|pool| &*pool.model.name == model);
    found.map(|pool| &*pool.model).ok_or_else(|| UnknownModel {
        model: model.to_owned(),
        known: table.pools().map(|pool| pool.model.name.to_string()).collect(),
    })
}

fn names(models: &[String]) -> Vec<Arc<str>> {
    models.iter().map(|name| name.as_str().into()).collect()
}

// === impl UnknownModel ===

impl std::fmt::Display for UnknownModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "there is no model {:?}; there are: {}", self.model, self.known.join(", "))
    }
}

impl std::error::Error for UnknownModel {}
