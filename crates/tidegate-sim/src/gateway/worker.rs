use crate::agenda::Time;
use crate::random::SplitMix64;
use crate::scenario::{Work, Workers};
use std::collections::VecDeque;
use tidegate_core::routing::LoadReport;

/// A worker itself: places, a queue, and blocks of a cache, first come, first served.
#[derive(Debug)]
pub(super) struct Worker {
    places: u32,
    waiting_max: usize,
    kv_blocks: u32,
    running: u32,
    blocks: u32,
    queue: VecDeque<(u32, Work)>,
    pub(super) trouble: Trouble,
    chance: SplitMix64,
    pub(super) totals: Totals,
}

/// What is wrong with it at present.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Trouble {
    pub(super) slow: f64,
    pub(super) dead: bool,
    pub(super) cut: bool,
    pub(super) fails: f64,
    pub(super) capacity: f64,
}

/// What it was asked and did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) sent: u64,
    pub(super) good: u64,
    pub(super) failed: u64,
    pub(super) refused: u64,
}

/// What a worker does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// Works on it, until then.
    Until(Time),
    /// It waits in the worker's own queue.
    Waits,
    /// Nothing will come back.
    Swallowed,
    /// It answers with an error at once.
    Fails,
    /// It says that it is full.
    Full,
}

// === impl Worker ===

impl Worker {
    pub(super) fn new(workers: &Workers, chance: SplitMix64) -> Self {
        Self {
            places: workers.places,
            waiting_max: workers.waiting as usize,
            kv_blocks: workers.kv_blocks,
            running: 0,
            blocks: 0,
            queue: VecDeque::new(),
            trouble: Trouble::NONE,
            chance,
            totals: Totals::default(),
        }
    }

    pub(super) fn take(&mut self, id: u32, work: Work, now: Time) -> Taken {
        self.totals.sent += 1;
        if self.trouble.cut {
            return Taken::Swallowed;
        }
        if self.trouble.fails > 0.0 && self.chance.uniform() <= self.trouble.fails {
            self.totals.failed += 1;
            return Taken::Fails;
        }
        if self.queue.is_empty() && self.fits(work) {
            return Taken::Until(self.start(work, now));
        }
        if self.queue.len() < self.waiting_max {
            self.queue.push_back((id, work));
            return Taken::Waits;
        }
        self.totals.refused += 1;
        Taken::Full
    }

    /// The next one from its queue, if there is room for it: its number, and until when it is worked on.
    pub(super) fn next(&mut self, now: Time) -> Option<(u32, Time)> {
        let (id, work) = *self.queue.front()?;
        if self.trouble.cut || !self.fits(work) {
            return None;
        }
        self.queue.pop_front();
        Some((id, self.start(work, now)))
    }

    /// One that was worked on is over.
    pub(super) fn end(&mut self, work: Work) {
        self.running = self.running.saturating_sub(1);
        self.blocks = self.blocks.saturating_sub(self.blocks_of(work));
    }

    /// Whoever asked left: out of the queue, or off its place.
    pub(super) fn abandon(&mut self, id: u32, work: Work) {
        if self.trouble.cut {
            return;
        }
        match self.queue.iter().position(|(waiting, _)| *waiting == id) {
            Some(index) => {
                self.queue.remove(index);
            }
            None => self.end(work),
        }
    }

    /// All that it had is gone.
    pub(super) fn forget_all(&mut self) {
        self.running = 0;
        self.blocks = 0;
        self.queue.clear();
    }

    /// What it says of its load; `None` when it can't be asked.
    pub(super) fn report(&self) -> Option<LoadReport> {
        let answers = !(self.trouble.dead || self.trouble.cut);
        answers.then(|| LoadReport {
            active_decode_blocks: Some(u64::from(self.blocks)),
            kv_total_blocks: Some(u64::from(self.kv_blocks)),
            active_prefill_tokens: None,
            running: Some(u64::from(self.running)),
            waiting: Some(self.queue.len() as u64),
        })
    }

    pub(super) fn running(&self) -> u32 {
        self.running
    }

    pub(super) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Places that it has at present.
    fn places_now(&self) -> u32 {
        (f64::from(self.places) * self.trouble.capacity).round() as u32
    }

    fn fits(&self, work: Work) -> bool {
        let blocks = u64::from(self.blocks) + u64::from(self.blocks_of(work));
        self.running < self.places_now() && blocks <= u64::from(self.kv_blocks)
    }

    fn start(&mut self, work: Work, now: Time) -> Time {
        self.running += 1;
        self.blocks += self.blocks_of(work);
        now + (work.time.as_nanos() as f64 * self.trouble.slow) as Time
    }

    /// One that is larger than the whole cache has it for itself.
    fn blocks_of(&self, work: Work) -> u32 {
        work.blocks.min(self.kv_blocks)
    }

    /// How many it was never allowed to work on, and does.
    pub(super) fn beyond(&self) -> Option<(u32, u32)> {
        (self.running > self.places).then_some((self.running, self.places))
    }
}

// === impl Trouble ===

impl Trouble {
    pub(super) const NONE: Self =
        Self { slow: 1.0, dead: false, cut: false, fails: 0.0, capacity: 1.0 };
}
