use super::model::{ANY_MODEL, Model};
use super::stats::{ModelStats, WorkerStats};
use super::table::Table;
use super::worker::{Worker, WorkerId};
use arc_swap::{ArcSwap, Guard};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tidegate_core::admission::RetryBounds;
use tidegate_core::routing::{BusyThresholds, DrainAdvisor, LoadReport, OnSilence, Shares};
use tokio::sync::Notify;

/// How a [`WorkerMonitor`] judges.
#[derive(Clone, Debug, PartialEq)]
pub struct MonitorConfig {
    /// For models that have none of their own. Default off.
    pub thresholds: BusyThresholds,
    /// By model, instead of all of the above. Default none.
    pub by_model: BTreeMap<String, BusyThresholds>,
    /// How long a report is believed. Default 5 s.
    pub report_ttl: Duration,
    /// What silence means. Default free.
    pub on_silence: OnSilence,
    /// How much of each threshold each priority may use. Default 0.95 for Normal and 0.9 for Low.
    pub shares: Shares,
    /// The shortest and the longest wait that is advised.
    pub retry: RetryBounds,
    /// Models that are kept at once; a worker's further ones are ignored. Default 1,024.
    pub models_max: usize,
}

/// Keeps the last load of every worker and rank, and who of them is busy.
///
/// Shared by all threads. Routing reads it without a lock; reports, thresholds and the set of workers can change
/// at any time and take effect at once. Call [`tick`](Self::tick) some times a second, or run
/// [`watch`](Self::watch): that is what lets reports expire and advice follow the load.
///
/// ```
/// use tidegate::routing::{BusyThresholds, LoadReport, MonitorConfig, WorkerMonitor};
///
/// let monitor = WorkerMonitor::new(MonitorConfig {
///     thresholds: BusyThresholds { active_decode_blocks: Some(0.85), ..BusyThresholds::OFF },
///     ..MonitorConfig::default()
/// });
/// let worker = monitor.add_worker("10.0.0.7:8000", None);
/// let report = LoadReport {
///     active_decode_blocks: Some(870),
///     kv_total_blocks: Some(1000),
///     ..LoadReport::default()
/// };
/// monitor.report(worker, 0, report, monitor.now());
/// assert_eq!(monitor.models()[0].busy, 1);
/// ```
#[derive(Debug)]
pub struct WorkerMonitor {
    table: ArcSwap<Table>,
    config: MonitorConfig,
    started: Instant,
    edits: Mutex<Edits>,
    changed: Notify,
}

/// What only changes under the lock of changes.
#[derive(Debug)]
struct Edits {
    any: Arc<Model>,
    next: usize,
    advisors: BTreeMap<Arc<str>, DrainAdvisor>,
}

/// There is no such model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownModel {
    /// What was asked for.
    pub model: String,
    /// Which there are.
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
            shares: Shares::default(),
            retry: RetryBounds::default(),
            models_max: 1024,
        }
    }
}

// === impl WorkerMonitor ===

impl WorkerMonitor {
    /// A monitor that knows no worker yet, and the models that the configuration names.
    #[must_use]
    pub fn new(config: MonitorConfig) -> Self {
        let model = |name: &str, thresholds| {
            Arc::new(Model::new(name, thresholds, config.shares, config.retry.min))
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
            started: Instant::now(),
            edits: Mutex::new(Edits { any, next: 0, advisors: BTreeMap::new() }),
            changed: Notify::new(),
            config,
        }
    }

    /// The time that this monitor's methods mean: since it was made.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Adds a worker that serves these models, or any while that is not known. It is up until told otherwise.
    pub fn add_worker(&self, name: &str, models: Option<&[String]>) -> WorkerId {
        let mut edits = self.edits();
        let id = WorkerId(edits.next);
        edits.next += 1;
        let worker = Arc::new(Worker::new(id, name, self.config.on_silence));
        worker.set_models(models.map(names));
        let mut workers = self.table.load().workers.clone();
        workers.insert(id, worker);
        self.rebuild(&edits, workers);
        id
    }

    /// Removes a worker. What is on its way there ends as it would have.
    pub fn remove_worker(&self, id: WorkerId) {
        let edits = self.edits();
        let mut workers = self.table.load().workers.clone();
        if let Some(gone) = workers.remove(&id) {
            gone.sit(Vec::new());
            self.rebuild(&edits, workers);
        }
    }

    /// Says which models a worker serves, `None` for any. Cheap when nothing changes.
    pub fn set_models(&self, id: WorkerId, models: Option<&[String]>) {
        let edits = self.edits();
        let table = self.table.load_full();
        if let Some(worker) = table.workers.get(&id)
            && worker.set_models(models.map(names))
        {
            self.rebuild(&edits, table.workers.clone());
        }
    }

    /// Says whether a worker can be reached. Answers whether that is news.
    pub fn set_up(&self, id: WorkerId, up: bool) -> bool {
        self.worker(id).is_some_and(|worker| worker.set_up(up))
    }

    /// Takes in what a rank of a worker said of itself at `at`: for a scrape when it was asked, for the header
    /// of an answer when it came.
    pub fn report(&self, id: WorkerId, rank: usize, report: LoadReport, at: Duration) {
        if let Some(worker) = self.worker(id) {
            worker.hear(rank, report, at);
        }
    }

    /// Says which ranks a worker has now, by the numbers of its reports.
    pub fn set_ranks(&self, id: WorkerId, ranks: &[usize]) {
        if let Some(worker) = self.worker(id) {
            worker.keep_ranks(ranks);
        }
    }

    /// The thresholds of every model that requests can come to.
    #[must_use]
    pub fn thresholds(&self) -> Vec<(Arc<str>, BusyThresholds)> {
        let table = self.table.load();
        let model = |pool: &Arc<super::table::Pool>| Arc::clone(&pool.board.model);
        let models: Vec<_> = table.pools().map(model).collect();
        models.into_iter().map(|model| (Arc::clone(&model.name), model.thresholds())).collect()
    }

    /// The thresholds of one model.
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

    /// Changes a model's thresholds, at once for all threads, and answers the new ones.
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
        // Everybody: the model of those who serve anything stands on more than one board.
        table.workers.values().for_each(|worker| worker.refresh());
        self.changed.notify_waiters();
        Ok(thresholds)
    }

    /// Lets old reports expire and computes advice. Answers the workers whose reports expired just now.
    pub fn tick(&self, now: Duration) -> Vec<Arc<Worker>> {
        let mut edits = self.edits();
        let table = self.table.load_full();
        let before = now.saturating_sub(self.config.report_ttl);
        let silent = table.workers.values().filter(|worker| worker.expire(before));
        let silent = silent.cloned().collect();
        edits.advisors.retain(|name, _| table.models.contains_key(name));
        for (name, model) in &table.models {
            let advisor = edits
                .advisors
                .entry(Arc::clone(name))
                .or_insert_with(|| DrainAdvisor::new(self.config.retry));
            let total = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
            advisor.observe(now, total(&model.ended), total(&model.refused), total(&model.held));
            model.set_advice(advisor.advise());
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

    /// Whether it makes a difference which model a request names. If not, nobody needs to read it.
    #[must_use]
    pub fn needs_model(&self) -> bool {
        self.table.load().needs_model()
    }

    /// What there is to know of every worker.
    #[must_use]
    pub fn workers(&self) -> Vec<WorkerStats> {
        let now = self.now();
        self.table.load().workers.values().map(|worker| WorkerStats::of(worker, now)).collect()
    }

    /// What there is to know of every model that requests can come to.
    #[must_use]
    pub fn models(&self) -> Vec<ModelStats> {
        self.table.load().pools().map(|pool| ModelStats::of(pool)).collect()
    }

    pub(super) fn table(&self) -> Guard<Arc<Table>> {
        self.table.load()
    }

    pub(super) fn retry(&self) -> RetryBounds {
        self.config.retry
    }

    fn worker(&self, id: WorkerId) -> Option<Arc<Worker>> {
        self.table.load().workers.get(&id).cloned()
    }

    /// Seats everybody anew. A model stays known while somebody serves it, and for good if it was configured or
    /// its thresholds were changed; all within the bound.
    fn rebuild(&self, edits: &Edits, workers: BTreeMap<WorkerId, Arc<Worker>>) {
        let mut models = self.table.load().models.clone();
        let served: BTreeSet<_> =
            workers.values().filter_map(|worker| worker.models()).flatten().collect();
        models.retain(|name, model| {
            let configured = &**name == ANY_MODEL || self.config.by_model.contains_key(&**name);
            configured || served.contains(name) || model.was_changed()
        });
        for name in served {
            if models.len() <= self.config.models_max && !models.contains_key(&name) {
                let thresholds = self.config.thresholds;
                let (shares, first) = (self.config.shares, self.config.retry.min);
                let model = Model::new(&name, thresholds, shares, first);
                models.insert(name, Arc::new(model));
            }
        }
        self.table.store(Arc::new(Table::new(workers, models, &edits.any)));
    }

    fn edits(&self) -> MutexGuard<'_, Edits> {
        self.edits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn find<'a>(table: &'a Table, model: &str) -> Result<&'a Model, UnknownModel> {
    let found = table.pools().find(|pool| &*pool.board.model.name == model);
    found.map(|pool| &*pool.board.model).ok_or_else(|| UnknownModel {
        model: model.to_owned(),
        known: table.pools().map(|pool| pool.board.model.name.to_string()).collect(),
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
