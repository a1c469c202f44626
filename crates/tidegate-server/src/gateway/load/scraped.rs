//! From a metrics page to what each rank says of its load.

use super::dialect::{Family, Meaning, Row, ServerKind, WAIT_REASONS};
use super::kv::{self, Kv};
use super::prometheus::{Sample, Samples};
use std::borrow::Cow;
use std::collections::BTreeMap;
use tidegate::routing::{KvUsage, LoadReport};

/// The load that one metrics page reports.
#[derive(Clone, Debug, PartialEq)]
pub struct Scraped {
    /// The kind of server.
    pub kind: ServerKind,
    /// The load of each data-parallel engine; 0 alone where there is one. Empty when none is reported.
    pub ranks: BTreeMap<u32, LoadReport>,
    /// Lines that could not be read, as far as they are about load, and samples that could not be placed.
    pub skipped: usize,
}

/// The numbers of one engine, from several series.
#[derive(Debug)]
struct Engine<'a> {
    kind: ServerKind,
    /// `None` for series without the label: they speak of the whole server.
    rank: Option<u32>,
    model: Cow<'a, str>,
    kv: Kv,
    prefill_tokens: Option<u64>,
    running: Option<u64>,
    waiting: Option<u64>,
    /// The same by reason: their sum is taken where no sum is told.
    waiting_for: [Option<u64>; WAIT_REASONS],
}

/// The engines of a page, while it is read.
#[derive(Debug, Default)]
struct Engines<'a> {
    found: Vec<Engine<'a>>,
    /// Where the last sample went: series of one engine tend to stand together.
    last: usize,
}

// === impl Scraped ===

impl Scraped {
    /// More ranks than this are not read: the largest groups known have a few dozen.
    pub const RANKS_MAX: usize = 256;

    /// Reads a page in Prometheus' text format. Never fails: what can't be read is counted, and a page that says
    /// nothing of load has no ranks.
    ///
    /// - A ratio without a total becomes blocks of a thousand ([`PER_MILLE`](super::PER_MILLE)).
    /// - Series of one rank that differ by `tp_rank`, `pp_rank`, `pid` and the like mirror one scheduler: the
    ///   highest counts, and nothing is added up.
    /// - Series of one rank that differ by model are engines of their own: their requests add up, and the fullest
    ///   cache speaks for the rank, because a request may be for that model.
    /// - NaN, infinity and what is negative count as not told.
    ///
    /// ```
    /// use tidegate_server::gateway::load::{Scraped, ServerKind};
    ///
    /// let page = "vllm:kv_cache_usage_perc{engine=\"0\"} 0.873\nvllm:num_requests_waiting{engine=\"0\"} 4\n";
    /// let scraped = Scraped::parse(page);
    /// assert_eq!(scraped.kind, ServerKind::Vllm);
    /// assert_eq!(scraped.ranks[&0].active_decode_blocks, Some(873));
    /// assert_eq!(scraped.ranks[&0].waiting, Some(4));
    /// ```
    #[must_use]
    pub fn parse(page: &str) -> Self {
        let mut engines = Engines::default();
        let mut kind = ServerKind::Unknown;
        let mut unplaced = 0;
        let mut samples = Samples::new(page);
        let mut names_load = |metric: &str| {
            let Some((family, name)) = Family::of(metric) else { return false };
            kind = kind.min(family.kind);
            family.rows(name).next().is_some()
        };
        while let Some(sample) = samples.next_named(&mut names_load) {
            let Some((family, name)) = Family::of(sample.name) else { continue };
            let row = family.rows(name).find(|row| row.holds_for(&sample));
            let placed = row.is_none_or(|row| engines.take(family.kind, row.meaning, &sample));
            unplaced += usize::from(!placed);
        }
        // A family that only names itself, as a server does that is starting, gives way to one that tells
        // something.
        if let Some(telling) = engines.found.iter().map(|engine| engine.kind).min() {
            kind = telling;
        }
        let (ranks, beyond) = engines.reports(kind);
        Self { kind, ranks, skipped: samples.skipped() + unplaced + beyond }
    }
}

// === impl Row ===

impl Row {
    fn holds_for(&self, sample: &Sample<'_>) -> bool {
        self.only.is_none_or(|(label, value)| sample.label(label).as_deref() == Some(value))
    }
}

// === impl Engines ===

impl<'a> Engines<'a> {
    /// Several models a rank are rare; this is room for them at the most ranks.
    const MOST: usize = 2 * Scraped::RANKS_MAX;

    /// False when the sample belongs to no rank, or to one too many.
    fn take(&mut self, kind: ServerKind, meaning: Meaning, sample: &Sample<'a>) -> bool {
        // SGLang counts requests in all under an empty priority, and then again by priority.
        if sample.label("priority").is_some_and(|priority| !priority.is_empty()) {
            return true;
        }
        let Ok(rank) = rank_of(kind, sample) else { return false };
        let model =
            sample.label("model_name").or_else(|| sample.label("model")).unwrap_or_default();
        match self.engine(kind, rank, model) {
            Some(engine) => engine.take(meaning, sample),
            None => return false,
        }
        true
    }

    fn engine(
        &mut self,
        kind: ServerKind,
        rank: Option<u32>,
        model: Cow<'a, str>,
    ) -> Option<&mut Engine<'a>> {
        let is_it = |engine: &Engine<'_>| {
            (engine.kind, engine.rank) == (kind, rank) && engine.model == model
        };
        if !self.found.get(self.last).is_some_and(is_it) {
            self.last = match self.found.iter().position(is_it) {
                Some(at) => at,
                None if self.found.len() == Self::MOST => return None,
                None => {
                    self.found.push(Engine::new(kind, rank, model));
                    self.found.len() - 1
                }
            };
        }
        self.found.get_mut(self.last)
    }

    /// The load of each rank, and the number of engines of ranks beyond the most.
    fn reports(mut self, kind: ServerKind) -> (BTreeMap<u32, LoadReport>, usize) {
        self.found.retain(|engine| engine.kind == kind);
        let mut ranks: BTreeMap<u32, LoadReport> = BTreeMap::new();
        let mut beyond = 0;
        for engine in self.settled() {
            let report = engine.report();
            let rank = engine.rank.unwrap_or(0);
            if report.is_empty() {
                continue;
            }
            if ranks.len() == Scraped::RANKS_MAX && !ranks.contains_key(&rank) {
                beyond += 1;
                continue;
            }
            ranks.entry(rank).and_modify(|known| add(known, report)).or_insert(report);
        }
        (ranks, beyond)
    }

    /// Hands what is said of several engines together, or of one without naming its model, to those it is said of:
    /// a total holds for each of them, all else only when it is one.
    fn settled(self) -> Vec<Engine<'a>> {
        let is_general: Vec<bool> =
            self.found.iter().map(|engine| self.found.iter().any(|of| engine.covers(of))).collect();
        let (mut general, mut engines) = (Vec::new(), Vec::new());
        for (engine, is_general) in self.found.into_iter().zip(is_general) {
            if is_general { general.push(engine) } else { engines.push(engine) }
        }
        for whole in &general {
            let only_one = engines.iter().filter(|engine| whole.covers(engine)).count() == 1;
            for engine in engines.iter_mut().filter(|engine| whole.covers(engine)) {
                engine.kv.total = engine.kv.total.or(whole.kv.total);
                engine.kv.total_tokens = engine.kv.total_tokens.or(whole.kv.total_tokens);
                engine.kv.block_tokens = engine.kv.block_tokens.or(whole.kv.block_tokens);
                if only_one {
                    engine.fill_from(whole);
                }
            }
        }
        engines
    }
}

// === impl Engine ===

impl<'a> Engine<'a> {
    fn new(kind: ServerKind, rank: Option<u32>, model: Cow<'a, str>) -> Self {
        Self {
            kind,
            rank,
            model,
            kv: Kv::default(),
            prefill_tokens: None,
            running: None,
            waiting: None,
            waiting_for: [None; WAIT_REASONS],
        }
    }

    /// Of two figures the higher one stays: `None` is the lowest.
    fn take(&mut self, meaning: Meaning, sample: &Sample<'_>) {
        let count = kv::count(sample.value);
        match meaning {
            Meaning::KvRatio => {
                let told = kv::ratio(sample.value);
                self.kv.ratio = [self.kv.ratio, told].into_iter().flatten().reduce(f64::max);
            }
            Meaning::KvUsed => self.kv.used = self.kv.used.max(count),
            Meaning::KvTotal => self.kv.total = self.kv.total.max(count),
            Meaning::KvUsedTokens => self.kv.used_tokens = self.kv.used_tokens.max(count),
            Meaning::KvTotalTokens => self.kv.total_tokens = self.kv.total_tokens.max(count),
            Meaning::BlockTokens => self.kv.block_tokens = self.kv.block_tokens.max(count),
            Meaning::KvLabels { blocks, tokens } => {
                // Python writes None for what is not known yet.
                let told = |label| sample.label(label).and_then(|value| value.parse().ok());
                self.kv.total = self.kv.total.max(told(blocks));
                self.kv.block_tokens = self.kv.block_tokens.max(told(tokens));
            }
            Meaning::PrefillTokens => self.prefill_tokens = self.prefill_tokens.max(count),
            Meaning::Running => self.running = self.running.max(count),
            Meaning::Waiting => self.waiting = self.waiting.max(count),
            Meaning::WaitingFor(reason) => {
                if let Some(waiting) = self.waiting_for.get_mut(reason) {
                    *waiting = (*waiting).max(count);
                }
            }
        }
    }

    /// Returns true if the other engine, which is named more exactly, includes this one.
    fn covers(&self, other: &Self) -> bool {
        let rank = self.rank.is_none() || self.rank == other.rank;
        let model = self.model.is_empty() || self.model == other.model;
        rank && model && (self.rank, &self.model) != (other.rank, &other.model)
    }

    fn fill_from(&mut self, other: &Self) {
        self.kv.ratio = self.kv.ratio.or(other.kv.ratio);
        self.kv.used = self.kv.used.or(other.kv.used);
        self.kv.used_tokens = self.kv.used_tokens.or(other.kv.used_tokens);
        self.prefill_tokens = self.prefill_tokens.or(other.prefill_tokens);
        self.running = self.running.or(other.running);
        self.waiting = self.waiting.or(other.waiting);
        for (waiting, others) in self.waiting_for.iter_mut().zip(other.waiting_for) {
            *waiting = waiting.or(others);
        }
    }

    fn waiting(&self) -> Option<u64> {
        let sum = || self.waiting_for.into_iter().flatten().reduce(u64::saturating_add);
        self.waiting.or_else(sum)
    }

    fn report(&self) -> LoadReport {
        let mut report = LoadReport {
            active_prefill_tokens: self.prefill_tokens,
            running: self.running,
            waiting: self.waiting(),
            ..LoadReport::default()
        };
        let is_told = |total: &u64| *total > 0 || self.kind.zero_blocks_is_starting();
        let total = self.kv.total.filter(is_told);
        let total_tokens = self.kv.total_tokens.filter(is_told);
        Kv { total, total_tokens, ..self.kv }.fill(&mut report);
        report
    }
}

/// The rank that a sample speaks of, if it names one. A name that is no number places it nowhere.
fn rank_of(kind: ServerKind, sample: &Sample<'_>) -> Result<Option<u32>, std::num::ParseIntError> {
    let label = kind.rank_label().and_then(|label| sample.label(label));
    label.filter(|rank| !rank.is_empty()).map(|rank| rank.parse()).transpose()
}

/// Adds what another model's engine on the same rank tells.
fn add(known: &mut LoadReport, other: LoadReport) {
    let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    };
    known.running = sum(known.running, other.running);
    known.waiting = sum(known.waiting, other.waiting);
    known.active_prefill_tokens = sum(known.active_prefill_tokens, other.active_prefill_tokens);
    if is_fuller(&other, known) {
        known.active_decode_blocks = other.active_decode_blocks;
        known.kv_total_blocks = other.kv_total_blocks;
        known.tokens_per_block = other.tokens_per_block;
    }
}

/// A cache that is told of counts before one that is starting, and that before nothing at all.
fn is_fuller(one: &LoadReport, other: &LoadReport) -> bool {
    match (one.kv(), other.kv()) {
        (
            KvUsage::Blocks { active: a, total: of_a },
            KvUsage::Blocks { active: b, total: of_b },
        ) => u128::from(a) * u128::from(of_b) > u128::from(b) * u128::from(of_a),
        (KvUsage::Blocks { .. }, _) | (KvUsage::NotReady, KvUsage::Unknown) => true,
        _ => false,
    }
}
