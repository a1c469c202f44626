use super::free_set::FreeSet;
use super::loads::Loads;
use super::upstream_state::UpstreamState;
use crate::routing::load::Standing;
use crate::routing::thresholds::Threshold;
use crate::sync::{AtomicU64, Ordering};

/// The upstreams of a pool that are up and that have room, by index. Upstreams publish their state as it changes
/// ([`AvailabilityEntry`](super::AvailabilityEntry)); routing reads it without a lock.
#[derive(Debug)]
pub struct Availability {
    free: FreeSet,
    up: FreeSet,
    loads: Loads,
    /// The standing of each upstream, by code.
    standing: Vec<AtomicU64>,
    /// The number of upstreams that are up, by the code of their standing.
    counts: [AtomicU64; CODES.len()],
}

// === impl Availability ===

impl Availability {
    /// Creates the availability of a pool of `size` upstreams, all down until they publish.
    #[must_use]
    pub fn new(size: usize) -> Self {
        Self {
            free: FreeSet::new(size),
            up: FreeSet::new(size),
            loads: Loads::new(size),
            standing: (0..size).map(|_| AtomicU64::new(DOWN)).collect(),
            counts: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Returns the number of upstreams in the pool.
    #[must_use]
    pub fn size(&self) -> usize {
        self.standing.len()
    }

    /// Returns the upstreams that have room.
    #[must_use]
    pub fn free(&self) -> &FreeSet {
        &self.free
    }

    /// Returns the load of the upstreams that have room.
    #[must_use]
    pub fn loads(&self) -> &Loads {
        &self.loads
    }

    /// Returns the upstreams that are up.
    #[must_use]
    pub fn up(&self) -> &FreeSet {
        &self.up
    }

    /// Returns the standing of one upstream.
    #[must_use]
    pub fn standing(&self, index: usize) -> Standing {
        self.standing.get(index).map_or(Standing::Free, |code| named(code.load(Ordering::Relaxed)))
    }

    /// Counts the upstreams that are up and have this standing.
    #[must_use]
    pub fn count(&self, standing: Standing) -> usize {
        let count = code(standing).and_then(|code| self.counts.get(code));
        count.map_or(0, |count| count.load(Ordering::Relaxed) as usize)
    }

    /// Shows the state of one upstream.
    pub(super) fn show(&self, index: usize, shown: UpstreamState) {
        self.up.set(index, shown.up);
        self.free.set(index, shown.is_free());
        let Some(cell) = self.standing.get(index) else { return };
        let is_up = code(shown.standing).filter(|_| shown.up);
        let new = is_up.map_or(DOWN, |code| code as u64);
        let old = cell.load(Ordering::Relaxed);
        cell.store(new, Ordering::Relaxed);
        if let Some(count) = self.counts.get(old as usize) {
            count.fetch_sub(1, Ordering::Relaxed);
        }
        if let Some(count) = self.counts.get(new as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Shows the load of one upstream, which changes with every request.
    pub(super) fn show_load(&self, index: usize, shown: UpstreamState, requests: u64) {
        self.loads.set(index, shown.is_free().then_some(requests));
    }
}

/// The code of an upstream that is not up; it is counted nowhere.
const DOWN: u64 = u64::MAX;

const CODES: [Standing; 7] = [
    Standing::Free,
    Standing::Silent,
    Standing::NotReady,
    Standing::Busy(Threshold::ActiveDecodeBlocks),
    Standing::Busy(Threshold::ActivePrefillTokens),
    Standing::Busy(Threshold::ActiveRequests),
    Standing::Busy(Threshold::ConcurrencyLimit),
];

fn code(standing: Standing) -> Option<usize> {
    CODES.iter().position(|known| *known == standing)
}

fn named(code: u64) -> Standing {
    CODES.get(code as usize).copied().unwrap_or(Standing::Free)
}

#[cfg(test)]
mod tests {
    use super::super::AvailabilityEntry;
    use super::*;
    use crate::routing::load::{Charge, LoadAccount, OnSilence};
    use crate::routing::thresholds::BusyThresholds;

    #[test]
    fn every_standing_survives_its_code() {
        for standing in CODES {
            assert_eq!(code(standing).map(|code| named(code as u64)), Some(standing));
        }
    }

    #[test]
    fn an_upstream_leaves_the_free_set_when_it_is_full_and_counts_once() {
        let thresholds = BusyThresholds { active_requests: Some(2), ..BusyThresholds::OFF };
        let availability = Availability::new(1);
        let mut entry = AvailabilityEntry::new(0, thresholds);
        let mut account = LoadAccount::new(OnSilence::Free);
        let mut show = |account: &LoadAccount, up| {
            let shown = entry.judge(account, up);
            entry.publish(&availability, shown, account.requests());
            availability.free().contains(0)
        };
        let _first = account.charge_anyway(Charge::LEAST);
        assert!(show(&account, true));
        let _second = account.charge_anyway(Charge::LEAST);
        assert!(!show(&account, true));
        let busy = Standing::Busy(Threshold::ActiveRequests);
        assert_eq!((availability.standing(0), availability.count(busy)), (busy, 1));
        assert!(!show(&account, false));
        assert_eq!((availability.up().len(), availability.count(busy)), (0, 0));
    }
}
