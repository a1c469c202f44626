//! Counters at the manager equal the truth, whatever becomes of the updates: a model of both ends over the shipped
//! merge and the shipped buffer.

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tidegate::MessageClass;
use tidegate::progress::{Histogram, Progress};
use tidegate::rng::Rng;
use tidegate::signal::{LevelConfig, StatsBuffer, StatsOffer, Update};

const EXECUTIONS: u64 = 24;
const COUNTERS: [&str; 3] = ["rows", "bytes", "errors"];
/// Small, so that every level is met.
const UPDATES_MAX: u64 = 12;
const STEPS: usize = 10_000;

/// Batches on their way: updates of executions, and if they are merged ones.
type Batch = (Vec<(u64, Progress)>, bool);

/// A worker, its connections and its manager.
struct Model {
    rng: Rng,
    /// Progress as the executions have it.
    truth: BTreeMap<u64, Progress>,
    /// Executions with changes that are not sent, or not acknowledged.
    dirty: BTreeSet<u64>,
    /// Batches of connections that are gone: each may still arrive, late and in any order.
    late: Vec<Batch>,
    /// Batches of the connection that lasts, in order.
    on_the_way: VecDeque<Batch>,
    buffer: StatsBuffer<u64, Progress>,
    /// Progress as the manager has it.
    known: BTreeMap<u64, Progress>,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    reports: u64,
    refused: u64,
    resent: u64,
    late: u64,
    dropped: u64,
}

// === impl Model ===

impl Model {
    fn new(seed: u64) -> Self {
        Self {
            rng: Rng::from_seed(seed),
            truth: BTreeMap::new(),
            dirty: BTreeSet::new(),
            late: Vec::new(),
            on_the_way: VecDeque::new(),
            buffer: StatsBuffer::new(UPDATES_MAX, 64, LevelConfig::default()).unwrap(),
            known: BTreeMap::new(),
            counts: Counts::default(),
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        ((self.rng.fraction() * bound as f64) as u64).min(bound - 1)
    }

    /// An execution counts something more.
    fn report(&mut self) {
        let (execution, counter, more) = (self.below(EXECUTIONS), self.below(3), self.below(100));
        let own = self.truth.entry(execution).or_default();
        let name = COUNTERS[usize::try_from(counter).unwrap()];
        let newer = own.counters.get(name).copied().unwrap_or(0) + more;
        // A value of a histogram for each report: its count is one more.
        let known = own.histograms.get("values");
        let mut values = known.map_or([0; 4], |known| known.counts().try_into().unwrap());
        values[usize::try_from(more % 4).unwrap()] += 1;
        let values = Histogram::new(vec![1.0, 2.0, 3.0], values.to_vec()).unwrap();
        let report = Progress {
            counters: [(name.into(), newer)].into(),
            histograms: [("values".into(), values)].into(),
            ..Progress::default()
        };
        assert_eq!(own.merge(&report), 0);
        self.dirty.insert(execution);
        self.counts.reports += 1;
    }

    /// The worker sends changes: one as it is, or several merged.
    fn send(&mut self) {
        let count = usize::try_from(1 + self.below(6)).unwrap();
        let chosen: Vec<u64> = self.dirty.iter().copied().take(count).collect();
        if chosen.is_empty() {
            return;
        }
        let mut updates = Vec::new();
        for execution in &chosen {
            self.dirty.remove(execution);
            updates.push((*execution, self.truth[execution].clone()));
        }
        let merged = chosen.len() > 1 || self.below(2) == 0;
        self.on_the_way.push_back((updates, merged));
    }

    /// The manager receives a batch; what it refuses is marked again, as its acknowledgement says.
    fn receive(&mut self, (updates, merged): Batch, is_acked: bool) {
        for (execution, progress) in updates {
            let offer =
                StatsOffer { class: MessageClass::Data, update: Update::Progress, batched: merged };
            let merge = |old: &mut Progress, new: Progress| assert_eq!(old.merge(&new), 0);
            if self.buffer.record(execution, offer, progress, merge).is_err() {
                self.counts.refused += 1;
                if is_acked {
                    self.dirty.insert(execution);
                }
            }
        }
    }

    /// The connection breaks: what was not acknowledged is sent again by the next, and may arrive all the same.
    fn reconnect(&mut self) {
        for batch in std::mem::take(&mut self.on_the_way) {
            self.counts.resent += batch.0.len() as u64;
            self.dirty.extend(batch.0.iter().map(|(execution, _)| *execution));
            match self.below(2) {
                0 => self.late.push(batch),
                _ => self.counts.dropped += batch.0.len() as u64,
            }
        }
    }

    /// A batch of an earlier connection arrives after all; nobody reads its acknowledgement.
    fn arrive_late(&mut self) {
        if !self.late.is_empty() {
            let bound = self.late.len() as u64;
            let at = usize::try_from(self.below(bound)).unwrap();
            let batch = self.late.swap_remove(at);
            self.counts.late += batch.0.len() as u64;
            self.receive(batch, false);
        }
    }

    fn consume(&mut self, max: usize) {
        for (execution, progress) in self.buffer.take(max) {
            self.known.entry(execution).or_default().merge(&progress);
        }
    }

    fn step(&mut self) {
        match self.below(100) {
            0..40 => self.report(),
            40..65 => self.send(),
            65..85 => {
                if let Some(batch) = self.on_the_way.pop_front() {
                    self.receive(batch, true);
                }
            }
            85..88 => self.reconnect(),
            88..92 => self.arrive_late(),
            _ => self.consume(3),
        }
    }

    /// No counter and no bucket is above the truth.
    fn is_plausible(&self) -> bool {
        self.known.iter().all(|(execution, known)| {
            let truth = &self.truth[execution];
            let buckets = |of: &Progress| of.histograms["values"].counts().to_vec();
            known.counters.iter().all(|(name, value)| *value <= truth.counters[name])
                && buckets(known).iter().zip(buckets(truth)).all(|(known, truth)| *known <= truth)
        })
    }

    /// No more faults: everything is sent, received and consumed.
    fn settle(&mut self) {
        while !(self.dirty.is_empty() && self.on_the_way.is_empty() && self.late.is_empty()) {
            self.arrive_late();
            self.send();
            if let Some(batch) = self.on_the_way.pop_front() {
                self.receive(batch, true);
            }
            self.consume(usize::MAX);
        }
        self.consume(usize::MAX);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// The trap: updates that carry differences are counted twice when they are resent, and lost when one is.
    #[test]
    fn ad37_counters_equal_the_truth_after_merges_drops_resends_and_reconnects(seed: u64) {
        let mut model = Model::new(seed);
        for _ in 0..STEPS {
            model.step();
            prop_assert!(model.is_plausible());
        }
        model.settle();
        prop_assert_eq!(&model.known, &model.truth);
        let Counts { reports, refused, resent, late, dropped } = model.counts;
        let merged = model.buffer.totals().merged;
        let met = [reports, refused, resent, late, dropped, merged];
        prop_assert!(met.iter().all(|count| *count > 50), "{:?}, {merged} merged", model.counts);
    }
}
