use super::table::Pool;
use super::worker::Worker;
use serde::Serialize;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tidegate_core::admission::MessagePriority;
use tidegate_core::routing::{BusyThresholds, LoadReport, RankTold, RankView};

/// One worker at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct WorkerStats {
    /// Its name.
    pub worker: String,
    /// Whether it can be reached as far as is known.
    pub up: bool,
    /// Whether any of its reports is recent enough to be believed.
    pub load_known: bool,
    /// Requests sent to it that have not ended.
    pub in_flight: u64,
    /// How long it takes to begin an answer, with refusals counted as slow.
    pub latency_us: u64,
    /// The models it serves; `None` for any.
    pub models: Option<Vec<String>>,
    /// Its ranks, by number.
    pub ranks: Vec<RankStats>,
}

/// One rank at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct RankStats {
    /// Its number.
    pub rank: usize,
    /// What it last said of itself, if that can still be believed.
    pub report: Option<LoadReport>,
    /// How old its last word is, believed or not.
    pub report_age_ms: Option<u128>,
    /// Requests there, with what was sent since.
    pub requests: u64,
    /// Tokens being prefilled, with what was sent since.
    pub prefill_tokens: u64,
    /// What it has to do in the terms of the thresholds.
    #[serde(skip)]
    pub view: RankView,
}

/// One model at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct ModelStats {
    /// Its name; `*` for requests whose model nobody knows.
    pub model: String,
    /// When its workers count as busy.
    #[serde(flatten)]
    pub thresholds: BusyThresholds,
    /// Workers that serve it.
    pub workers: usize,
    /// Of these, how many can be reached.
    pub up: usize,
    /// Of these, how many have no room.
    pub busy: usize,
    /// Requests sent that have not ended.
    pub in_flight: u64,
    /// Requests refused because all workers were busy or none was there.
    pub refused: u64,
    /// When those who are refused now are told to come back, on average.
    pub retry_after_ms: u128,
}

// === impl WorkerStats ===

impl WorkerStats {
    pub(super) fn of(worker: &Worker, now: Duration) -> Self {
        let rank = |RankTold { rank, report, heard_at, view }| RankStats {
            rank,
            report,
            report_age_ms: heard_at.map(|at| now.saturating_sub(at).as_millis()),
            requests: view.requests,
            prefill_tokens: view.prefill_tokens,
            view,
        };
        let (load_known, ranks) =
            worker.with_ledger(|ledger| (ledger.is_heard(), ledger.ranks().map(rank).collect()));
        Self {
            worker: worker.name().to_owned(),
            up: worker.is_up(),
            load_known,
            in_flight: worker.in_flight(),
            latency_us: worker.latency_us(now),
            models: worker.models().map(|names| names.iter().map(ToString::to_string).collect()),
            ranks,
        }
    }
}

// === impl ModelStats ===

impl ModelStats {
    pub(super) fn of(pool: &Pool) -> Self {
        let (model, up) = (&pool.board.model, pool.board.up().len());
        Self {
            model: model.name.to_string(),
            thresholds: model.thresholds(),
            workers: pool.members.len(),
            up,
            busy: up.saturating_sub(pool.board.free(MessagePriority::Normal).len()),
            in_flight: model.held.load(Ordering::Relaxed),
            refused: model.refused.load(Ordering::Relaxed),
            retry_after_ms: model.advice().as_millis(),
        }
    }
}
