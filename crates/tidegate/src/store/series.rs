use super::{BatchRefusal, PricedBatch};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Number of series in the memory of a writer that are known to be stored: about 8 MB.
const KNOWN_MAX: usize = 64 * 1024;

/// Bounds for the number of stored series. A series is a tenant's meter: each costs rows of its own in every
/// minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesLimits {
    /// The most series that one [source](PricedBatch::source) may begin. Default no bound.
    pub per_source: u64,
    /// The most series of all. Default no bound.
    pub total: u64,
}

/// A tenant and a meter.
pub(crate) type Series = (Arc<str>, Arc<str>);

/// Series that a writer knows to be stored, a part of all.
#[derive(Debug, Default)]
pub(crate) struct KnownSeries(HashSet<Series>);

/// Decides whether batches may begin the series that are new with them.
#[derive(Debug)]
pub(crate) struct SeriesGuard<'a> {
    limits: SeriesLimits,
    known: &'a KnownSeries,
    /// Those that are stored although the writer did not know.
    stored: HashSet<Series>,
    /// Number of series by source, and of all, with those of this call.
    counts: HashMap<Arc<str>, u64>,
    total: u64,
    /// Some series of this call are neither known nor stored.
    has_new: bool,
    new: HashMap<Series, Arc<str>>,
}

// === impl SeriesLimits ===

impl Default for SeriesLimits {
    fn default() -> Self {
        Self { per_source: u64::MAX, total: u64::MAX }
    }
}

// === impl KnownSeries ===

impl KnownSeries {
    /// The series of batches that this writer does not know, each once.
    pub(crate) fn unknown<'a>(
        &self,
        batches: impl IntoIterator<Item = &'a PricedBatch>,
    ) -> HashSet<Series> {
        let mut unknown = HashSet::new();
        let mut last: Option<&Series> = None;
        let mut held;
        for priced in batches.into_iter().flat_map(|batch| &batch.records) {
            let (tenant, meter) = (&priced.record.tenant, &priced.record.meter);
            // Most records are of the same series as the one before.
            if last.is_some_and(|(a, b)| Arc::ptr_eq(a, tenant) && Arc::ptr_eq(b, meter)) {
                continue;
            }
            held = (Arc::clone(tenant), Arc::clone(meter));
            match self.0.get(&held) {
                Some(known) => last = Some(known),
                None => {
                    last = None;
                    unknown.insert(held);
                }
            }
        }
        unknown
    }

    /// Adds series that are durable.
    pub(crate) fn add(&mut self, series: impl IntoIterator<Item = Series>) {
        if self.0.len() > KNOWN_MAX {
            self.clear();
        }
        self.0.extend(series);
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

// === impl SeriesGuard ===

impl<'a> SeriesGuard<'a> {
    /// `counts` are those of the sources of batches with a series that is neither known nor `stored`.
    pub(crate) fn new(
        limits: SeriesLimits,
        known: &'a KnownSeries,
        stored: HashSet<Series>,
        (counts, total): (HashMap<Arc<str>, u64>, u64),
    ) -> Self {
        Self { limits, known, stored, counts, total, has_new: true, new: HashMap::new() }
    }

    /// A guard for batches all of whose series are known or `stored`.
    pub(crate) fn without_new(known: &'a KnownSeries, stored: HashSet<Series>) -> Self {
        let none = (HashMap::new(), 0);
        Self { has_new: false, ..Self::new(SeriesLimits::default(), known, stored, none) }
    }

    /// The series that are new with a batch, if it may begin them.
    pub(crate) fn check(&self, batch: &PricedBatch) -> Result<HashSet<Series>, BatchRefusal> {
        if !self.has_new {
            return Ok(HashSet::new());
        }
        let mut new = self.known.unknown([batch]);
        new.retain(|series| !self.stored.contains(series) && !self.new.contains_key(series));
        let count = new.len() as u64;
        let of_source = self.counts.get(&batch.source).copied().unwrap_or(0);
        if count > 0 && of_source.saturating_add(count) > self.limits.per_source {
            return Err(BatchRefusal::TooManySeriesOfSource { limit: self.limits.per_source });
        }
        if count > 0 && self.total.saturating_add(count) > self.limits.total {
            return Err(BatchRefusal::TooManySeries { limit: self.limits.total });
        }
        Ok(new)
    }

    /// Counts the new series of a batch that is stored.
    pub(crate) fn begin(&mut self, batch: &PricedBatch, new: HashSet<Series>) {
        if new.is_empty() {
            return;
        }
        *self.counts.entry(Arc::clone(&batch.source)).or_default() += new.len() as u64;
        self.total += new.len() as u64;
        self.new.extend(new.into_iter().map(|series| (series, Arc::clone(&batch.source))));
    }

    /// Returns the new series with their sources, the counts of these, and the count of all.
    pub(crate) fn finish(self) -> NewSeries {
        let Self { stored, counts, total, new, .. } = self;
        let begun: HashSet<_> = new.values().cloned().collect();
        let counts = counts.into_iter().filter(|(source, _)| begun.contains(source)).collect();
        NewSeries { stored, new, counts, total }
    }
}

/// Series that batches begin.
#[derive(Debug)]
pub(crate) struct NewSeries {
    stored: HashSet<Series>,
    pub(crate) new: HashMap<Series, Arc<str>>,
    pub(crate) counts: Vec<(Arc<str>, u64)>,
    pub(crate) total: u64,
}

// === impl NewSeries ===

impl NewSeries {
    /// All of them, once they are durable.
    pub(crate) fn into_known(self) -> impl Iterator<Item = Series> {
        self.stored.into_iter().chain(self.new.into_keys())
    }
}
