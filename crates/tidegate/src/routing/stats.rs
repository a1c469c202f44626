use super::pool::Pool;
use super::upstream::Upstream;
use serde::Serialize;
use std::time::Duration;
use tidegate_core::admission::MessagePriority;
use tidegate_core::routing::{BusyThresholds, LoadReport, RankReport, RankView};

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
    /// The time to the first byte, with refusals counted as slow.
    pub latency_us: u64,
    /// The models that it serves; `None` for any.
    pub models: Option<Vec<String>>,
    /// The ranks, by number.
    pub ranks: Vec<RankStats>,
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
    /// The mean wait that refused clients are told.
    pub retry_after_ms: u128,
}

// === impl UpstreamLoad ===

impl UpstreamLoad {
    pub(super) fn of(upstream: &Upstream, now: Duration) -> Self {
        let rank = |RankReport { rank, report, reported_at, view }| RankStats {
            rank,
            report,
            report_age_ms: reported_at.map(|at| now.saturating_sub(at).as_millis()),
            requests: view.requests,
            prefill_tokens: view.prefill_tokens,
            view,
        };
        let (load_known, ranks) = upstream
            .with_account(|account| (account.has_report(), account.ranks().map(rank).collect()));
        Self {
            upstream: upstream.name().to_owned(),
            up: upstream.is_up(),
            load_known,
            in_flight: upstream.in_flight(),
            latency_us: upstream.latency_us(now),
            models: upstream.models().map(|names| names.iter().map(ToString::to_string).collect()),
            ranks,
        }
    }
}

// === impl ModelStats ===

impl ModelStats {
    pub(super) fn of(pool: &Pool) -> Self {
        let (model, demand) = (&pool.model, &pool.model.demand);
        let up = pool.availability.up().len();
        Self {
            model: model.name.to_string(),
            thresholds: model.thresholds().all(),
            upstreams: pool.members.len(),
            up,
            busy: up.saturating_sub(pool.availability.free(MessagePriority::Normal).len()),
            in_flight: demand.in_flight(),
            refused: demand.refused(),
            retry_after_ms: demand.advice().as_millis(),
        }
    }
}
