use super::Tariffs;
use super::segment::Segment;
use super::tariff_set::{Lane, Verdict};
use crate::usage::{Charge, Fallback};
use rust_decimal::Decimal;
use std::sync::Arc;

/// One tenant's meter: what may price it, and what was used in the periods that matter.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) tenant: Arc<str>,
    pub(super) meter: Arc<str>,
    pub(super) sums: Vec<Sum>,
    /// The last batch that had a record of it.
    pub(super) touched: u64,
    /// Of which set of tariffs the lane and the memo are.
    generation: u32,
    lane: Lane,
    memo: Memo,
}

/// How much was used in a period.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sum {
    pub(super) period: Segment,
    pub(super) used: Decimal,
    /// The last batch that changed it.
    pub(super) touched: u64,
}

/// What holds for a stretch of time. Most records fall into the one of the record before.
#[derive(Debug)]
struct Memo {
    same: Segment,
    verdict: Verdict,
    /// The sum that the tiers depend on.
    tier_sum: Option<u32>,
    /// All sums that have this stretch.
    sums: Vec<u32>,
}

// === impl Account ===

impl Account {
    pub(super) fn new(tenant: Arc<str>, meter: Arc<str>) -> Self {
        let verdict = Verdict::Gap(Fallback::UnknownMeter);
        Self {
            tenant,
            meter,
            sums: Vec::new(),
            touched: 0,
            generation: 0,
            lane: Lane::default(),
            memo: Memo { same: Segment::NEVER, verdict, tier_sum: None, sums: Vec::new() },
        }
    }

    #[inline]
    pub(super) fn is(&self, tenant: &Arc<str>, meter: &Arc<str>) -> bool {
        same_name(&self.tenant, tenant) && same_name(&self.meter, meter)
    }

    /// How many places of a book it takes.
    pub(super) fn weight(&self) -> usize {
        self.sums.len().max(1)
    }

    /// Whether what is remembered holds at that time.
    #[inline]
    pub(super) fn remembers(&self, generation: u32, at_ns: i64) -> bool {
        self.generation == generation && self.memo.same.contains(at_ns)
    }

    /// What may price it, when that is known of this set of tariffs.
    pub(super) fn lane(&self, generation: u32) -> Option<&Lane> {
        (self.generation == generation).then_some(&self.lane)
    }

    pub(super) fn has(&self, period: Segment) -> bool {
        self.sums.iter().any(|sum| sum.period == period)
    }

    /// Adds a sum, unless it is there.
    pub(super) fn add(&mut self, sum: Sum) {
        if !self.has(sum.period) {
            self.sums.push(sum);
            self.forget();
        }
    }

    /// What is remembered holds no more.
    pub(super) fn forget(&mut self) {
        self.memo.same = Segment::NEVER;
    }

    /// Finds out what holds at a time. Returns how many sums had to begin at zero.
    pub(super) fn learn(
        &mut self,
        tariffs: &Tariffs,
        (generation, batch): (u32, u64),
        at_ns: i64,
    ) -> usize {
        if self.generation != generation {
            self.lane = tariffs.lane(&self.tenant, &self.meter);
            self.generation = generation;
        }
        let before = self.sums.len();
        let sums = &mut self.sums;
        let mut same = tariffs.periods(&self.lane, at_ns, |period| {
            if !sums.iter().any(|sum| sum.period == period) {
                sums.push(Sum { period, used: Decimal::ZERO, touched: batch });
            }
        });
        self.memo.sums.clear();
        for (index, sum) in (0..).zip(&self.sums) {
            if sum.period.contains(at_ns) {
                same = same.and(sum.period);
                self.memo.sums.push(index);
            } else {
                same = same.without(sum.period, at_ns);
            }
        }
        let (verdict, run) = tariffs.verdict(&self.lane, at_ns);
        self.memo.same = same.and(run);
        self.memo.verdict = verdict;
        self.memo.tier_sum = self.tier_sum(tariffs, verdict, at_ns);
        self.sums.len() - before
    }

    /// Prices a quantity by what is remembered, and counts it.
    #[inline]
    pub(super) fn charge(&mut self, tariffs: &Tariffs, quantity: Decimal, batch: u64) -> Charge {
        self.touched = batch;
        let tier_sum = self.memo.tier_sum.and_then(|index| self.sums.get(index as usize));
        let used = tier_sum.map_or(Decimal::ZERO, |sum| sum.used);
        let mut fits = true;
        for index in &self.memo.sums {
            if let Some(sum) = self.sums.get_mut(*index as usize) {
                fits &= sum.count(quantity);
                sum.touched = batch;
            }
        }
        if !fits {
            return tariffs.by_fallback(quantity, Fallback::OutOfRange);
        }
        tariffs.charge(self.memo.verdict, used, quantity, |_| ())
    }

    /// Takes a quantity out of all sums that have that time.
    pub(super) fn uncount(&mut self, quantity: Decimal, at_ns: i64) {
        for sum in self.sums.iter_mut().filter(|sum| sum.period.contains(at_ns)) {
            sum.count(-quantity);
        }
    }

    fn tier_sum(&self, tariffs: &Tariffs, verdict: Verdict, at_ns: i64) -> Option<u32> {
        let Verdict::Rate { tariff, .. } = verdict else { return None };
        let period = tariffs.period(tariffs.tariff(tariff).counter?, at_ns);
        let index = self.sums.iter().position(|sum| sum.period == period)?;
        u32::try_from(index).ok()
    }
}

// === impl Sum ===

impl Sum {
    /// Whether the sum with the quantity fits; when not, it stays.
    #[inline]
    fn count(&mut self, quantity: Decimal) -> bool {
        let used = super::exact::add(self.used, quantity);
        self.used = used.unwrap_or(self.used);
        used.is_some()
    }
}

#[inline]
fn same_name(a: &Arc<str>, b: &Arc<str>) -> bool {
    Arc::ptr_eq(a, b) || a == b
}
