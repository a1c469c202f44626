use super::pool::Pool;
use super::table::Table;
use super::upstream::Upstream;
use serde::Serialize;
use std::time::Duration;
use tidegate_core::admission::MessagePriority;
use tidegate_core::limit::LimitSnapshot;
use tidegate_core::outbox::QueueState;
use tidegate_core::queue::{PoolQueue, PoolQueueTotals};
use tidegate_core::routing::{BusyThresholds, LoadReport, RankReport, RankView, Threshold};

/// A snapshot of one upstream.
#[derive(Clone, Debug, Serialize)]
pub struct UpstreamLoad {
    /// The name.
    pub upstream: String,
    /// True if it can be reached as far as is known.
    pub up: bool,
    /// True if any rank has a valid load report.
    pub load_known: bool,
    /// Requests sent that have not ended.
    pub in_flight: u64,
    /// The most requests that may be in flight; `None` without a limit.
    pub limit: Option<u32>,
    /// The limit that is found, and why it moved last; `None` if it is configured.
    pub found_limit: Option<FoundLimit>,
    /// The time to the first byte of a body, with refusals counted as slow.
    pub latency_us: u64,
    /// The thresholds that are set and can't be checked, because it does not report what they need.
    pub thresholds_without_data: Vec<Threshold>,
    /// The models that it serves; `None` for any.
    pub models: Option<Vec<String>>,
    /// The ranks, by number.
    pub ranks: Vec<RankStats>,
}

/// A snapshot of a limit that is found.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FoundLimit {
    /// The limit that was found, apart from a running experiment.
    pub found: u32,
    /// The cause of its last change.
    pub last_move: &'static str,
    /// The elasticity of throughput that the last experiment measured.
    pub elasticity: Option<f64>,
    /// The typical time of a request without a queue, in milliseconds.
    pub baseline_ms: Option<f64>,
    /// True while the upstream does not respond and only probes are sent.
    pub breaker_open: bool,
}

/// A snapshot of one rank.
#[derive(Clone, Debug, Serialize)]
pub struct RankStats {
    /// The number of the rank.
    pub rank: usize,
    /// The last load report unless it has expired.
    pub report: Option<LoadReport>,
    /// The age of the last load report, expired or not.
    pub report_age_ms: Option<u128>,
    /// Requests at the rank, with those sent since the report.
    pub requests: u64,
    /// Tokens being prefilled, with requests sent since the report.
    pub prefill_tokens: u64,
    /// The load in the terms of the thresholds.
    #[serde(skip)]
    pub view: RankView,
}

/// A snapshot of one model.
#[derive(Clone, Debug, Serialize)]
pub struct ModelStats {
    /// The name; `*` for requests whose model is unknown.
    pub model: String,
    /// The busy thresholds of its upstreams.
    #[serde(flatten)]
    pub thresholds: BusyThresholds,
    /// Upstreams that serve it.
    pub upstreams: usize,
    /// Upstreams of these that can be reached.
    pub up: usize,
    /// Upstreams of these that have no room.
    pub busy: usize,
    /// Requests sent that have not ended.
    pub in_flight: u64,
    /// Requests refused because all upstreams were busy or there was none.
    pub refused: u64,
    /// The wait that the next refused client is told.
    pub retry_after_ms: u128,
    /// The queue of the requests that wait for one of its upstreams.
    pub queue: QueueLoad,
}

/// A snapshot of the queue of one model.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct QueueLoad {
    /// Waiting requests of High.
    pub high: usize,
    /// Waiting requests of Normal.
    pub normal: usize,
    /// Waiting requests of Low.
    pub low: usize,
    /// The fill.
    pub state: QueueState,
    /// Requests that may wait, without those for a burst.
    pub size: usize,
    /// The mean time that a request is at an upstream, in microseconds, once one has ended.
    pub service_us: Option<u128>,
    /// Totals of all requests.
    #[serde(flatten)]
    pub totals: PoolQueueTotals,
}

// === impl UpstreamLoad ===

impl UpstreamLoad {
    pub(super) fn of(upstream: &Upstream, table: &Table, now: Duration) -> Self {
        let rank = |RankReport { rank, report, reported_at, view }| RankStats {
            rank,
            report,
            report_age_ms: reported_at.map(|at| now.saturating_sub(at).as_millis()),
            requests: view.requests,
            prefill_tokens: view.prefill_tokens,
            view,
        };
        let (load_known, limit, found_limit, ranks) = upstream.with_account(|account| {
            let (load, found) = (account.load(), account.found_limit().map(FoundLimit::of));
            (load.has_report(), load.limit(), found, load.ranks().map(rank).collect())
        });
        Self {
            upstream: upstream.name().to_owned(),
            up: upstream.is_up(),
            load_known,
            limit,
            found_limit,
            in_flight: upstream.in_flight(),
            latency_us: upstream.latency_us(now),
            thresholds_without_data: table.thresholds_without_data(upstream),
            models: upstream.models().map(|names| names.iter().map(ToString::to_string).collect()),
            ranks,
        }
    }
}

// === impl FoundLimit ===

impl FoundLimit {
    fn of(snapshot: LimitSnapshot) -> Self {
        Self {
            found: snapshot.found,
            last_move: snapshot.last_move.label(),
            elasticity: snapshot.elasticity,
            baseline_ms: snapshot.baseline_s.map(|baseline_s| baseline_s * 1e3),
            breaker_open: snapshot.open,
        }
    }
}

// === impl ModelStats ===

impl ModelStats {
    pub(super) fn of(pool: &Pool, now: Duration) -> Self {
        let (model, demand) = (&pool.model, &pool.model.demand);
        let up = pool.availability.up().len();
        Self {
            model: model.name.to_string(),
            thresholds: model.thresholds(),
            upstreams: pool.members.len(),
            up,
            busy: up.saturating_sub(pool.availability.free().len()),
            in_flight: demand.in_flight(),
            refused: demand.refused(),
            retry_after_ms: demand.advice(now).as_millis(),
            queue: model.queue.read(QueueLoad::of),
        }
    }
}

// === impl QueueLoad ===

impl QueueLoad {
    fn of<T>(queue: &PoolQueue<T>) -> Self {
        Self {
            high: queue.waiting(MessagePriority::High),
            normal: queue.waiting(MessagePriority::Normal),
            low: queue.waiting(MessagePriority::Low),
            state: queue.state(),
            size: queue.config().size,
            service_us: queue.service().map(|service| service.as_micros()),
            totals: queue.totals(),
        }
    }
}
