use crate::tariff::calendar::Segment;
use crate::tariff::exact;
use rust_decimal::Decimal;

/// Usage by period. The most used sum is stored inline, which saves one memory access.
#[derive(Debug, Default)]
pub(in crate::tariff) struct Sums {
    pub(in crate::tariff) first: Option<Sum>,
    pub(in crate::tariff) more: Vec<Sum>,
}

/// Usage in one period.
#[derive(Clone, Copy, Debug)]
pub(in crate::tariff) struct Sum {
    pub(in crate::tariff) period: Segment,
    pub(in crate::tariff) used: Decimal,
    /// Last batch that changed it.
    pub(in crate::tariff) touched: u64,
}

// === impl Sums ===

impl Sums {
    pub(in crate::tariff) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.len()
    }

    pub(in crate::tariff) fn iter(&self) -> impl Iterator<Item = &Sum> {
        self.first.iter().chain(&self.more)
    }

    pub(in crate::tariff) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Sum> {
        self.first.iter_mut().chain(&mut self.more)
    }

    pub(in crate::tariff) fn has(&self, period: Segment) -> bool {
        self.iter().any(|sum| sum.period == period)
    }

    pub(in crate::tariff) fn push(&mut self, sum: Sum) {
        match &mut self.first {
            Some(_) => self.more.push(sum),
            first => *first = Some(sum),
        }
    }

    /// Moves the sum of a period to the first position.
    pub(in crate::tariff) fn bring_first(&mut self, period: Segment) {
        let found = self.more.iter_mut().find(|sum| sum.period == period);
        if let (Some(found), Some(first)) = (found, &mut self.first) {
            std::mem::swap(found, first);
        }
    }

    pub(in crate::tariff) fn retain(&mut self, mut keep: impl FnMut(&Sum) -> bool) {
        self.first = self.first.filter(&mut keep);
        self.more.retain(keep);
        if self.first.is_none() {
            self.first = self.more.pop();
        }
    }
}

// === impl Sum ===

impl Sum {
    /// Adds a quantity. Returns false and changes nothing if the sum does not fit.
    #[inline]
    pub(in crate::tariff) fn count(&mut self, quantity: Decimal, batch: u64) -> bool {
        self.touched = batch;
        self.add(quantity)
    }

    #[inline]
    pub(in crate::tariff) fn add(&mut self, quantity: Decimal) -> bool {
        let used = exact::add(self.used, quantity);
        self.used = used.unwrap_or(self.used);
        used.is_some()
    }
}
