use arc_swap::ArcSwap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tidegate_core::admission::MessagePriority;
use tidegate_core::routing::{BusyThresholds, FreeSet, Loads, Standing, Threshold};

/// The name that stands for requests whose model nobody knows.
pub const ANY_MODEL: &str = "*";

/// What is known of one model, for as long as anyone serves it.
#[derive(Debug)]
pub(super) struct Model {
    pub name: Arc<str>,
    thresholds: ArcSwap<Limits>,
    /// Of [`BusyThresholds`], how much Low may use.
    low_share: f64,
    pub ended: AtomicU64,
    pub refused: AtomicU64,
    pub held: AtomicU64,
    /// Whether its thresholds were changed at run time.
    changed: AtomicBool,
    advice_us: AtomicU64,
}

/// Thresholds, and what is left of them for Low.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub all: BusyThresholds,
    pub low: BusyThresholds,
}

/// Who serves a model and has room, one bit a worker. Written by the workers as they change, read by routing
/// without a lock.
#[derive(Debug)]
pub(super) struct Board {
    pub model: Arc<Model>,
    /// With room for a request of any priority, and with room for more than Low.
    free: [FreeSet; 2],
    up: FreeSet,
    loads: [Loads; 2],
    /// How each one stands, by code, and how many of those that are up stand so.
    standing: Vec<AtomicU8>,
    counts: [AtomicUsize; CODES.len()],
}

/// How a worker shows on a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub up: bool,
    pub standing: Standing,
    pub standing_low: Standing,
}

// === impl Model ===

impl Model {
    pub fn new(name: &str, thresholds: BusyThresholds, low_share: f64, advice: Duration) -> Self {
        Self {
            name: name.into(),
            thresholds: ArcSwap::from_pointee(Limits::new(thresholds, low_share)),
            low_share,
            ended: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            held: AtomicU64::new(0),
            changed: AtomicBool::new(false),
            advice_us: AtomicU64::new(advice.as_micros() as u64),
        }
    }

    pub fn thresholds(&self) -> BusyThresholds {
        self.thresholds.load().all
    }

    pub fn limits(&self) -> Limits {
        **self.thresholds.load()
    }

    pub fn was_changed(&self) -> bool {
        self.changed.load(Ordering::Relaxed)
    }

    pub fn set_thresholds(&self, thresholds: BusyThresholds) {
        self.changed.store(true, Ordering::Relaxed);
        self.thresholds.store(Arc::new(Limits::new(thresholds, self.low_share)));
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
    fn new(all: BusyThresholds, low_share: f64) -> Self {
        Self { all, low: all.at_share(low_share) }
    }

    pub fn of(&self, priority: MessagePriority) -> &BusyThresholds {
        if priority == MessagePriority::Low { &self.low } else { &self.all }
    }
}

// === impl Board ===

impl Board {
    pub fn new(model: Arc<Model>, size: usize) -> Self {
        Self {
            model,
            free: [FreeSet::new(size), FreeSet::new(size)],
            up: FreeSet::new(size),
            loads: [Loads::new(size), Loads::new(size)],
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
        self.free[0].set(place, shown.up && shown.standing_low == Standing::Free);
        self.free[1].set(place, shown.up && shown.standing == Standing::Free);
        let Some(cell) = self.standing.get(place) else { return };
        let new = if shown.up { code(shown.standing) } else { DOWN };
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
        let free = [shown.standing_low, shown.standing];
        for (loads, standing) in self.loads.iter().zip(free) {
            loads.set(place, (shown.up && standing == Standing::Free).then_some(requests));
        }
    }
}

fn lane(priority: MessagePriority) -> usize {
    usize::from(priority != MessagePriority::Low)
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
