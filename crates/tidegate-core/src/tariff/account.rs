use super::Tariffs;
use super::segment::Segment;
use super::sums::{Sum, Sums};
use super::tariff_set::{Lane, Verdict};
use crate::usage::{Charge, Fallback};
use rust_decimal::Decimal;
use std::sync::Arc;

/// One tenant's meter: what may price it, and what was used in the periods that matter.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) tenant: Arc<str>,
    pub(super) meter: Arc<str>,
    pub(super) sums: Sums,
    /// The last batch that had a record of it.
    pub(super) touched: u64,
    /// Of which set of tariffs the lane and the memo are.
    generation: u32,
    memo: Memo,
    lane: Box<Lane>,
}

/// What holds for a stretch of time. Most records fall into the one of the record before.
#[derive(Clone, Copy, Debug)]
struct Memo {
    same: Segment,
    verdict: Verdict,
    /// Whether the first sum has this stretch; if the price depends on a sum, it is that one.
    counts_first: bool,
    /// Whether other sums have it, which are then looked for.
    counts_more: bool,
}

// === impl Account ===

impl Account {
    pub(super) fn new(tenant: Arc<str>, meter: Arc<str>) -> Self {
        let memo = Memo {
            same: Segment::NEVER,
            verdict: Verdict::Gap(Fallback::UnknownMeter),
            counts_first: false,
            counts_more: false,
        };
        let (sums, lane) = (Sums::default(), Box::default());
        Self { tenant, meter, sums, touched: 0, generation: 0, memo, lane }
    }

    #[inline]
    pub(super) fn is(&self, tenant: &Arc<str>, meter: &Arc<str>) -> bool {
        same_name(&self.tenant, tenant) && same_name(&self.meter, meter)
    }

    /// How many places of a book it takes.
    #[inline]
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
        (self.generation == generation).then_some(&*self.lane)
    }

    /// Adds a sum, unless it is there.
    pub(super) fn add(&mut self, sum: Sum) {
        if !self.sums.has(sum.period) {
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
            *self.lane = tariffs.lane(&self.tenant, &self.meter);
            self.generation = generation;
        }
        let (verdict, run) = tariffs.verdict(&self.lane, at_ns);
        let tier_counter = tariffs.tier_counter(verdict);
        let before = self.sums.len();
        let sums = &mut self.sums;
        let mut same = tariffs.periods(&self.lane, at_ns, |counter, period| {
            if !sums.has(period) {
                sums.push(Sum { period, used: Decimal::ZERO, touched: batch });
            }
            if tier_counter == Some(counter) {
                sums.bring_first(period);
            }
        });
        for sum in sums.iter() {
            same = match sum.period.contains(at_ns) {
                true => same.and(sum.period),
                false => same.without(sum.period, at_ns),
            };
        }
        self.memo = Memo {
            same: same.and(run),
            verdict,
            counts_first: sums.first.is_some_and(|sum| sum.period.contains(at_ns)),
            counts_more: sums.more.iter().any(|sum| sum.period.contains(at_ns)),
        };
        sums.len() - before
    }

    /// Prices a quantity at a time that is [remembered](Self::remembers), and counts it.
    #[inline]
    pub(super) fn charge(
        &mut self,
        tariffs: &Tariffs,
        (quantity, at_ns): (Decimal, i64),
        batch: u64,
    ) -> Charge {
        self.touched = batch;
        let (mut used, mut fits) = (Decimal::ZERO, true);
        if self.memo.counts_first
            && let Some(sum) = &mut self.sums.first
        {
            used = sum.used;
            fits = sum.count(quantity, batch);
        }
        if self.memo.counts_more {
            for sum in self.sums.more.iter_mut().filter(|sum| sum.period.contains(at_ns)) {
                fits &= sum.count(quantity, batch);
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
            sum.add(-quantity);
        }
    }
}

#[inline]
fn same_name(a: &Arc<str>, b: &Arc<str>) -> bool {
    Arc::ptr_eq(a, b) || a == b
}
