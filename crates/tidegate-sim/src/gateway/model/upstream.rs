use crate::agenda::Time;
use crate::scenario::{Upstreams, Work};
use std::collections::VecDeque;
use tidegate_core::rng::Rng;
use tidegate_core::routing::LoadReport;

/// A simulated upstream: slots, a FIFO queue, and blocks of a cache.
#[derive(Debug)]
pub struct Upstream {
    slots: u32,
    queue_max: usize,
    kv_blocks: u32,
    thrash_above: Option<u32>,
    running: u32,
    blocks: u32,
    queue: VecDeque<(u32, Work)>,
    pub trouble: Trouble,
    rng: Rng,
    pub totals: Totals,
}

/// The active faults of an upstream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trouble {
    pub slow: f64,
    pub dead: bool,
    pub cut: bool,
    pub fails: f64,
    pub capacity: f64,
}

/// Counts of its requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    pub sent: u64,
    pub good: u64,
    pub failed: u64,
    pub refused: u64,
}

/// The response of an upstream to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Executes it, until then.
    Until(Time),
    /// Queued at the upstream.
    Waits,
    /// No response, ever.
    Swallowed,
    /// An error at once.
    Fails,
    /// A refusal because it is full.
    Full,
}

// === impl Upstream ===

impl Upstream {
    pub fn new(upstreams: &Upstreams, rng: Rng) -> Self {
        Self {
            slots: upstreams.slots,
            queue_max: upstreams.queue as usize,
            kv_blocks: upstreams.kv_blocks,
            thrash_above: upstreams.thrash_above,
            running: 0,
            blocks: 0,
            queue: VecDeque::new(),
            trouble: Trouble::NONE,
            rng,
            totals: Totals::default(),
        }
    }

    pub fn take(&mut self, id: u32, work: Work, now: Time) -> Taken {
        self.totals.sent += 1;
        if self.trouble.cut {
            return Taken::Swallowed;
        }
        if self.trouble.fails > 0.0 && self.rng.uniform() <= self.trouble.fails {
            self.totals.failed += 1;
            return Taken::Fails;
        }
        if self.queue.is_empty() && self.fits(work) {
            return Taken::Until(self.start(work, now));
        }
        if self.queue.len() < self.queue_max {
            self.queue.push_back((id, work));
            return Taken::Waits;
        }
        self.totals.refused += 1;
        Taken::Full
    }

    /// Starts the next request of its queue, if there is room: returns its number and the time of its end.
    pub fn next(&mut self, now: Time) -> Option<(u32, Time)> {
        let (id, work) = *self.queue.front()?;
        if self.trouble.cut || !self.fits(work) {
            return None;
        }
        self.queue.pop_front();
        Some((id, self.start(work, now)))
    }

    /// Frees the slot and the blocks of a request that is over.
    pub fn end(&mut self, work: Work) {
        self.running = self.running.saturating_sub(1);
        self.blocks = self.blocks.saturating_sub(self.blocks_of(work));
    }

    /// Removes a request whose client left from the queue or from its slot.
    pub fn abandon(&mut self, id: u32, work: Work) {
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

    /// Drops all requests.
    pub fn forget_all(&mut self) {
        self.running = 0;
        self.blocks = 0;
        self.queue.clear();
    }

    /// Returns its load report; `None` when it is unreachable.
    pub fn report(&self) -> Option<LoadReport> {
        let answers = !(self.trouble.dead || self.trouble.cut);
        answers.then(|| LoadReport {
            active_decode_blocks: Some(u64::from(self.blocks)),
            kv_total_blocks: Some(u64::from(self.kv_blocks)),
            active_prefill_tokens: None,
            running: Some(u64::from(self.running)),
            waiting: Some(self.queue.len() as u64),
            tokens_per_block: None,
        })
    }

    pub fn running(&self) -> u32 {
        self.running
    }

    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Returns the slots that it has at present.
    fn slots_now(&self) -> u32 {
        (f64::from(self.slots) * self.trouble.capacity).round() as u32
    }

    fn fits(&self, work: Work) -> bool {
        let blocks = u64::from(self.blocks) + u64::from(self.blocks_of(work));
        self.running < self.slots_now() && blocks <= u64::from(self.kv_blocks)
    }

    fn start(&mut self, work: Work, now: Time) -> Time {
        self.running += 1;
        self.blocks += self.blocks_of(work);
        now + (work.time.as_nanos() as f64 * self.trouble.slow * self.thrashing()) as Time
    }

    /// Returns the factor by which a request takes longer because of the others that are there.
    fn thrashing(&self) -> f64 {
        let there = f64::from(self.running) + self.queue.len() as f64;
        let above = self.thrash_above.map_or(there, f64::from);
        let excess = (there / above).max(1.0);
        excess * excess
    }

    /// Returns the blocks of a request; one that is larger than the cache gets the whole cache.
    fn blocks_of(&self, work: Work) -> u32 {
        work.blocks.min(self.kv_blocks)
    }

    /// Returns the running requests and the slots if there are more requests than slots.
    pub fn beyond(&self) -> Option<(u32, u32)> {
        (self.running > self.slots).then_some((self.running, self.slots))
    }
}

// === impl Trouble ===

impl Trouble {
    pub const NONE: Self = Self { slow: 1.0, dead: false, cut: false, fails: 0.0, capacity: 1.0 };
}
