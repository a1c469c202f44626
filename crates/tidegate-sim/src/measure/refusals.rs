/// Refusals by the number of their reason. There is one for each class in each tenth of a second,
/// and most have none or few: eight bytes for each reason, and nothing without one.
#[derive(Clone, Debug, Default)]
pub(super) struct Refusals(Vec<(u8, u32)>);

// === impl Refusals ===

impl Refusals {
    pub(super) fn add(&mut self, reason: u8, count: u32) {
        match self.0.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, sum)) => *sum = sum.saturating_add(count),
            None => self.0.push((reason, count)),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u8, u32)> {
        self.0.iter().copied()
    }

    pub(super) fn of(&self, reason: u8) -> u64 {
        self.iter().find(|(known, _)| *known == reason).map_or(0, |(_, count)| u64::from(count))
    }

    pub(super) fn total(&self) -> u64 {
        self.iter().map(|(_, count)| u64::from(count)).sum()
    }
}
