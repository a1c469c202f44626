use super::sums::{Sum, Sums};
use crate::tariff::calendar::Segment;
use crate::tariff::tariff_set::{Candidates, Tariffs, Verdict};
use crate::usage::{Fallback, UsageCharge};
use rust_decimal::Decimal;
use std::sync::Arc;

/// Account of one tenant's meter: its candidate tariffs, and its usage in the relevant periods.
#[derive(Debug)]
pub(in crate::tariff) struct Account {
    pub(in crate::tariff) tenant: Arc<str>,
    pub(in crate::tariff) meter: Arc<str>,
    pub(in crate::tariff) sums: Sums,
    /// Last batch with a record of this account.
    pub(in crate::tariff) touched: u64,
    /// Generation of the tariffs for which `candidates` and `memo` are valid.
    generation: u32,
    memo: Memo,
    candidates: Box<Candidates>,
}

/// Verdict for a time segment. Most records fall into the segment of the record before.
#[derive(Clone, Copy, Debug)]
struct Memo {
    same: Segment,
    verdict: Verdict,
    /// The first sum covers this segment; if the price depends on a sum, it is that one.
    counts_first: bool,
    /// Further sums cover this segment, and have to be searched.
    counts_more: bool,
}

// === impl Account ===

impl Account {
    pub(in crate::tariff) fn new(tenant: Arc<str>, meter: Arc<str>) -> Self {
        let memo = Memo {
            same: Segment::NEVER,
            verdict: Verdict::Gap(Fallback::UnknownMeter),
            counts_first: false,
            counts_more: false,
        };
        let (sums, candidates) = (Sums::default(), Box::default());
        Self { tenant, meter, sums, touched: 0, generation: 0, memo, candidates }
    }

    #[inline]
    pub(in crate::tariff) fn is(&self, tenant: &Arc<str>, meter: &Arc<str>) -> bool {
        same_name(&self.tenant, tenant) && same_name(&self.meter, meter)
    }

    /// Number of cache entries that the account occupies.
    #[inline]
    pub(in crate::tariff) fn weight(&self) -> usize {
        self.sums.len().max(1)
    }

    /// True if the memo is valid at that time.
    #[inline]
    pub(in crate::tariff) fn remembers(&self, generation: u32, at_ns: i64) -> bool {
        self.generation == generation && self.memo.same.contains(at_ns)
    }

    /// Candidate tariffs, if known for this generation.
    pub(in crate::tariff) fn candidates(&self, generation: u32) -> Option<&Candidates> {
        (self.generation == generation).then_some(&*self.candidates)
    }

    /// Adds a sum, unless it exists.
    pub(in crate::tariff) fn add(&mut self, sum: Sum) {
        if !self.sums.has(sum.period) {
            self.sums.push(sum);
            self.forget();
        }
    }

    /// Invalidates the memo.
    pub(in crate::tariff) fn forget(&mut self) {
        self.memo.same = Segment::NEVER;
    }

    /// Resolves the verdict at a time. Returns the number of sums that start at zero.
    pub(in crate::tariff) fn resolve(
        &mut self,
        tariffs: &Tariffs,
        (generation, batch): (u32, u64),
        at_ns: i64,
    ) -> usize {
        if self.generation != generation {
            *self.candidates = tariffs.candidates(&self.tenant, &self.meter);
            self.generation = generation;
        }
        let (verdict, run) = tariffs.verdict(&self.candidates, at_ns);
        let tier_counter = tariffs.tier_counter(verdict);
        let before = self.sums.len();
        let sums = &mut self.sums;
        let mut same = tariffs.periods(&self.candidates, at_ns, |counter, period| {
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

    /// Prices a quantity at a time for which the memo [is valid](Self::remembers), and counts it.
    #[inline]
    pub(in crate::tariff) fn charge(
        &mut self,
        tariffs: &Tariffs,
        (quantity, at_ns): (Decimal, i64),
        batch: u64,
    ) -> UsageCharge {
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

    /// Subtracts a quantity from all sums that cover that time.
    pub(in crate::tariff) fn uncount(&mut self, quantity: Decimal, at_ns: i64) {
        for sum in self.sums.iter_mut().filter(|sum| sum.period.contains(at_ns)) {
            sum.add(-quantity);
        }
    }
}

#[inline]
fn same_name(a: &Arc<str>, b: &Arc<str>) -> bool {
    Arc::ptr_eq(a, b) || a == b
}
