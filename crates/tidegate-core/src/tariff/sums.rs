use super::exact;
use super::segment::Segment;
use rust_decimal::Decimal;

/// What was used in some periods. The one that is used most has a place of its own, which needs no second look
/// into memory.
#[derive(Debug, Default)]
pub(super) struct Sums {
    pub(super) first: Option<Sum>,
    pub(super) more: Vec<Sum>,
}

/// How much was used in a period.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sum {
    pub(super) period: Segment,
    pub(super) used: Decimal,
    /// The last batch that changed it.
    pub(super) touched: u64,
}

// === impl Sums ===

impl Sums {
    pub(super) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Sum> {
        self.first.iter().chain(&self.more)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Sum> {
        self.first.iter_mut().chain(&mut self.more)
    }

    pub(super) fn has(&self, period: Segment) -> bool {
        self.iter().any(|sum| sum.period == period)
    }

    pub(super) fn push(&mut self, sum: Sum) {
        match &mut self.first {
            Some(_) => self.more.push(sum),
            first => *first = Some(sum),
        }
    }

    /// Gives a period's sum the first place.
    pub(super) fn bring_first(&mut self, period: Segment) {
        let found = self.more.iter_mut().find(|sum| sum.period == period);
        if let (Some(found), Some(first)) = (found, &mut self.first) {
            std::mem::swap(found, first);
        }
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&Sum) -> bool) {
        self.first = self.first.filter(&mut keep);
        self.more.retain(keep);
        if self.first.is_none() {
            self.first = self.more.pop();
        }
    }
}

// === impl Sum ===

impl Sum {
    /// Whether the sum with the quantity fits; when not, it stays.
    #[inline]
    pub(super) fn count(&mut self, quantity: Decimal, batch: u64) -> bool {
        self.touched = batch;
        self.add(quantity)
    }

    #[inline]
    pub(super) fn add(&mut self, quantity: Decimal) -> bool {
        let used = exact::add(self.used, quantity);
        self.used = used.unwrap_or(self.used);
        used.is_some()
    }
}
