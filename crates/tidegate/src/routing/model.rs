use arc_swap::ArcSwap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tidegate_core::admission::MessagePriority;
use tidegate_core::routing::{
    BusyThresholds, FreeSet, HighAsked, Loads, Shares, Standing, Threshold,
};

/// The name that stands for requests whose model nobody knows.
pub const ANY_MODEL: &str = "*";

/// What is known of one model, for as long as anyone serves it.
#[derive(Debug)]
pub(super) struct Model {
    pub name: Arc<str>,
    thresholds: ArcSwap<Limits>,
    /// Of [`BusyThresholds`], how much each priority may use.
    shares: Shares,
    /// When High asked last: two that note it at once may lose one of two moments that are the same.
    high_asked: AtomicU64,
    pub ended: AtomicU64,
    pub refused: AtomicU64,
    pub held: AtomicU64,
    /// Whether its thresholds were changed at run time.
    changed: AtomicBool,
    advice_us: AtomicU64,
}

/// Priorities that are judged alike stand in one lane: Low, Normal, and all above.
pub(super) const LANES: usize = 3;

/// Thresholds, and what is left of them for each lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    by_lane: [BusyThresholds; LANES],
    /// Whether nothing is checked at all.
    pub are_off: bool,
}

/// Who serves a model and has room, one bit a worker. Written by the workers as they change, read by routing
/// without a lock.
#[derive(Debug)]
pub(super) struct Board {
    pub model: Arc<Model>,
    /// Who has room, for each lane.
    free: [FreeSet; LANES],
    up: FreeSet,
    loads: [Loads; LANES],
    /// How each one stands, by code, and how many of those that are up stand so.
    standing: Vec<AtomicU8>,
    counts: [AtomicUsize; CODES.len()],
}

/// How a worker shows on a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub up: bool,
    /// For each lane. The last one is how it stands by its thresholds as they are.
    pub standings: [Standing; LANES],
}

// === impl Model ===

impl Model {
    pub fn new(name: &str, thresholds: BusyThresholds, shares: Shares, advice: Duration) -> Self {
        Self {
            name: name.into(),
            thresholds: ArcSwap::from_pointee(Limits::new(thresholds, shares)),
            shares,
            high_asked: AtomicU64::new(HighAsked::default().into_word()),
            ended: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            held: AtomicU64::new(0),
            changed: AtomicBool::new(false),
            advice_us: AtomicU64::new(advice.as_micros() as u64),
        }
    }

    pub fn thresholds(&self) -> BusyThresholds {
        self.limits().all()
    }

    pub fn limits(&self) -> Limits {
        **self.thresholds.load()
    }

    /// Notes a request of this priority, and says as which it is judged now.
    pub fn judge(&self, priority: MessagePriority, now: Duration) -> MessagePriority {
        let before = self.high_asked.load(Ordering::Relaxed);
        let mut asked = HighAsked::from_word(before);
        let judged = asked.judge(priority, now);
        let after = asked.into_word();
        if after != before {
            self.high_asked.store(after, Ordering::Relaxed);
        }
        judged
    }

    pub fn was_changed(&self) -> bool {
        self.changed.load(Ordering::Relaxed)
    }

    pub fn set_thresholds(&self, thresholds: BusyThresholds) {
        self.changed.store(true, Ordering::Relaxed);
        self.thresholds.store(Arc::new(Limits::new(thresholds, self.shares)));
    }

    pub fn advice(&self) -> Duration {
        Duration::from_micros(self.advice_us.load(Ordering::Relaxed))
    }

    pub fn set_advice(&self, wait: Duration) {
        let wait_us = u64::try_from(wait.as_micros()).unwrap_or(u64::MAX);
        self.advice_us.store(wait_us, Ordering::Relaxed);
    }
}

// === impl Limits ===

impl Limits {
    fn new(all: BusyThresholds, shares: Shares) -> Self {
        use MessagePriority::{High, Low, Normal};
        let by_lane = [Low, Normal, High].map(|priority| all.for_priority(priority, shares));
        Self { by_lane, are_off: all.are_off() }
    }

    /// As they were set.
    pub fn all(&self) -> BusyThresholds {
        self.by_lane[LANES - 1]
    }

    pub fn of(&self, priority: MessagePriority) -> &BusyThresholds {
        &self.by_lane[lane(priority)]
    }

    /// How something stands by each lane's thresholds.
    pub fn standings(&self, standing: impl Fn(&BusyThresholds) -> Standing) -> [Standing; LANES] {
        if self.are_off {
            return [standing(&self.by_lane[LANES - 1]); LANES];
        }
        [0, 1, 2].map(|lane: usize| standing(&self.by_lane[lane]))
    }
}

// === impl Board ===

impl Board {
    pub fn new(model: Arc<Model>, size: usize) -> Self {
        Self {
            model,
            free: std::array::from_fn(|_| FreeSet::new(size)),
            up: FreeSet::new(size),
            loads: std::array::from_fn(|_| Loads::new(size)),
            standing: (0..size).map(|_| AtomicU8::new(DOWN)).collect(),
            counts: Default::default(),
        }
    }

    /// Those that have room for this priority.
    pub fn free(&self, priority: MessagePriority) -> &FreeSet {
        &self.free[lane(priority)]
    }

    /// What those that have room for this priority have to do.
    pub fn loads(&self, priority: MessagePriority) -> &Loads {
        &self.loads[lane(priority)]
    }

    pub fn up(&self) -> &FreeSet {
        &self.up
    }

    /// How one of them stands.
    pub fn standing(&self, place: usize) -> Standing {
        self.standing.get(place).map_or(Standing::Free, |code| named(code.load(Ordering::Relaxed)))
    }

    /// How many of those that are up stand so.
    pub fn count(&self, standing: Standing) -> usize {
        self.counts[usize::from(code(standing))].load(Ordering::Relaxed)
    }

    /// Only ever called for one place by one thread at a time: the worker's that sits there.
    pub fn show(&self, place: usize, shown: Shown) {
        self.up.set(place, shown.up);
        for (free, standing) in self.free.iter().zip(shown.standings) {
            free.set(place, shown.up && standing == Standing::Free);
        }
        let Some(cell) = self.standing.get(place) else { return };
        let new = if shown.up { code(shown.standings[LANES - 1]) } else { DOWN };
        let old = cell.swap(new, Ordering::Relaxed);
        if let Some(count) = self.counts.get(usize::from(old)) {
            count.fetch_sub(1, Ordering::Relaxed);
        }
        if let Some(count) = self.counts.get(usize::from(new)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// As [`show`](Self::show), for what changes with every request.
    pub fn show_load(&self, place: usize, shown: Shown, requests: u64) {
        for (loads, standing) in self.loads.iter().zip(shown.standings) {
            loads.set(place, (shown.up && standing == Standing::Free).then_some(requests));
        }
    }
}

fn lane(priority: MessagePriority) -> usize {
    match priority {
        MessagePriority::Low => 0,
        MessagePriority::Normal => 1,
        MessagePriority::High | MessagePriority::Critical => LANES - 1,
    }
}

/// The code of one that is not up; it counts nowhere.
const DOWN: u8 = u8::MAX;

const CODES: [Standing; 6] = [
    Standing::Free,
    Standing::Silent,
    Standing::NotReady,
    Standing::Busy(Threshold::ActiveDecodeBlocks),
    Standing::Busy(Threshold::ActivePrefillTokens),
    Standing::Busy(Threshold::ActiveRequests),
];

fn code(standing: Standing) -> u8 {
    CODES.iter().position(|known| *known == standing).unwrap_or(0) as u8
}

fn named(code: u8) -> Standing {
    CODES.get(usize::from(code)).copied().unwrap_or(Standing::Free)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_standing_survives_the_board() {
        for standing in CODES {
            assert_eq!(named(code(standing)), standing);
        }
    }
}
