use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Retry-After when nothing runs.
const RETRY_AFTER_UNKNOWN: Duration = Duration::from_secs(1);

/// Limits of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkSettings {
    /// Concurrent pieces of work.
    pub slots: usize,
    /// Cache blocks in total.
    pub blocks: u64,
    /// Limit of queued pieces of work.
    pub max_waiting: usize,
    /// Pieces of work, running and queued, beyond which all take longer: by the square of the excess.
    pub thrash_above: Option<usize>,
}

/// Requirements of a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkRequest {
    /// Duration in its slot.
    pub time: Duration,
    /// Cache blocks that it holds.
    pub blocks: u64,
}

/// Id of a piece of work; ids increase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkId(u64);

/// Refusal of a piece of work; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkRefused {
    /// All slots and the queue are full.
    #[error("all slots and the queue are full")]
    Full {
        /// Time until the next piece of work ends.
        retry_after: Duration,
    },
    /// The work needs more blocks than there are.
    #[error("{blocks} blocks exceed the total of {total_blocks}")]
    TooLarge {
        /// Requested blocks.
        blocks: u64,
        /// Blocks in total.
        total_blocks: u64,
    },
}

/// Load of the work slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkLoad {
    /// Running pieces of work.
    pub running: u64,
    /// Queued pieces of work.
    pub waiting: u64,
    /// Blocks in use.
    pub blocks: u64,
}

/// Slots and blocks for work, strictly first come first served: work that does not fit blocks the queue.
///
/// Queued work starts at the time when its slot became free, not when [`advance`](Self::advance) was called, so
/// coarse timers cost no capacity.
#[derive(Debug)]
pub struct WorkSlots {
    settings: WorkSettings,
    slots_share: f64,
    slow_factor: f64,
    next_id: u64,
    /// By id, which is the order of arrival.
    waiting: BTreeMap<WorkId, WorkRequest>,
    running: BTreeMap<WorkId, Running>,
    /// Ends of running work, in order.
    ends: BTreeSet<(Duration, WorkId)>,
    used_blocks: u64,
    frozen_at: Option<Duration>,
    /// Total frozen time; ends are stored without it.
    frozen_time: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    ends: Duration,
    blocks: u64,
}

// === impl WorkSlots ===

impl WorkSlots {
    /// Makes free slots.
    #[must_use]
    pub fn new(settings: WorkSettings) -> Self {
        Self {
            settings,
            slots_share: 1.0,
            slow_factor: 1.0,
            next_id: 0,
            waiting: BTreeMap::new(),
            running: BTreeMap::new(),
            ends: BTreeSet::new(),
            used_blocks: 0,
            frozen_at: None,
            frozen_time: Duration::ZERO,
        }
    }

    /// Starts or queues a piece of work. The caller must [advance](Self::advance) to `now` first.
    ///
    /// # Errors
    ///
    /// When slots and queue are full, or the work can never fit.
    pub fn submit(&mut self, now: Duration, request: WorkRequest) -> Result<WorkId, WorkRefused> {
        if request.blocks > self.settings.blocks {
            let total_blocks = self.settings.blocks;
            return Err(WorkRefused::TooLarge { blocks: request.blocks, total_blocks });
        }
        let at_once = self.waiting.is_empty() && self.can_begin(request);
        if !at_once && self.waiting.len() >= self.settings.max_waiting {
            return Err(WorkRefused::Full { retry_after: self.next_free_slot(now) });
        }
        let id = WorkId(self.next_id);
        self.next_id += 1;
        self.waiting.insert(id, request);
        self.begin_next(self.own_time(now));
        Ok(id)
    }

    /// Cancels running or queued work; no effect after its end.
    pub fn cancel(&mut self, now: Duration, id: WorkId) {
        if let Some(gone) = self.running.remove(&id) {
            self.ends.remove(&(gone.ends, id));
            self.used_blocks -= gone.blocks;
        } else if self.waiting.remove(&id).is_none() {
            return;
        }
        self.begin_next(self.own_time(now));
    }

    /// Advances to `now` and reports ended work, in order.
    pub fn advance(&mut self, now: Duration, mut on_end: impl FnMut(WorkId)) {
        let now = self.own_time(now);
        while let Some(&(ends, id)) = self.ends.first().filter(|(ends, _)| *ends <= now) {
            self.ends.pop_first();
            if let Some(done) = self.running.remove(&id) {
                self.used_blocks -= done.blocks;
            }
            on_end(id);
            self.begin_next(ends);
        }
    }

    /// Time of the next event to [advance](Self::advance) to.
    #[must_use]
    pub fn next_event(&self) -> Option<Duration> {
        let next = self.ends.first().filter(|_| self.frozen_at.is_none())?;
        Some(next.0 + self.frozen_time)
    }

    /// Sets the share of available slots, 0 … 1, rounded, and at least one slot unless it is 0. Running work
    /// finishes.
    pub fn set_slots_share(&mut self, now: Duration, share: f64) {
        self.slots_share = share;
        self.begin_next(self.own_time(now));
    }

    /// Sets the duration factor of work that starts from now on.
    pub fn set_slow_factor(&mut self, factor: f64) {
        self.slow_factor = factor;
    }

    /// Freezes or unfreezes work. Work that arrives meanwhile waits.
    pub fn set_frozen(&mut self, now: Duration, frozen: bool) {
        match (self.frozen_at, frozen) {
            (None, true) => self.frozen_at = Some(now),
            (Some(since), false) => {
                self.frozen_at = None;
                self.frozen_time += now.saturating_sub(since);
                self.begin_next(self.own_time(now));
            }
            _ => {}
        }
    }

    /// Load at present.
    #[must_use]
    pub fn load(&self) -> WorkLoad {
        WorkLoad {
            running: self.running.len() as u64,
            waiting: self.waiting.len() as u64,
            blocks: self.used_blocks,
        }
    }

    /// Starts queued work, in order.
    fn begin_next(&mut self, at: Duration) {
        while let Some((&id, &request)) = self.waiting.first_key_value() {
            if !self.can_begin(request) {
                return;
            }
            let factor = self.slow_factor * self.thrashing();
            self.waiting.pop_first();
            let ends = at + request.time.mul_f64(factor);
            self.running.insert(id, Running { ends, blocks: request.blocks });
            self.ends.insert((ends, id));
            self.used_blocks += request.blocks;
        }
    }

    /// The factor by which work takes longer because of the rest that is here.
    fn thrashing(&self) -> f64 {
        let there = (self.running.len() + self.waiting.len()) as f64;
        let above = self.settings.thrash_above.map_or(there, |above| above as f64);
        let excess = (there / above).max(1.0);
        excess * excess
    }

    fn can_begin(&self, request: WorkRequest) -> bool {
        self.frozen_at.is_none()
            && self.running.len() < self.slots()
            && self.used_blocks + request.blocks <= self.settings.blocks
    }

    fn slots(&self) -> usize {
        let left = (self.settings.slots as f64 * self.slots_share).round() as usize;
        if self.slots_share > 0.0 { left.max(1) } else { 0 }
    }

    fn next_free_slot(&self, now: Duration) -> Duration {
        let left = self.next_event().map(|at| at.saturating_sub(now));
        left.unwrap_or(RETRY_AFTER_UNKNOWN)
    }

    /// Time without frozen periods.
    fn own_time(&self, now: Duration) -> Duration {
        self.frozen_at.unwrap_or(now).saturating_sub(self.frozen_time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn slots(slots: usize, blocks: u64, max_waiting: usize) -> WorkSlots {
        WorkSlots::new(WorkSettings { slots, blocks, max_waiting, thrash_above: None })
    }

    fn ask(time_ms: u64, blocks: u64) -> WorkRequest {
        WorkRequest { time: ms(time_ms), blocks }
    }

    fn ended(slots: &mut WorkSlots, now_ms: u64) -> Vec<WorkId> {
        let mut ended = Vec::new();
        slots.advance(ms(now_ms), |id| ended.push(id));
        ended
    }

    #[test]
    fn work_takes_longer_beyond_the_load_from_which_it_thrashes() {
        let settings = WorkSettings { slots: 1, blocks: 0, max_waiting: 10, thrash_above: Some(2) };
        let mut slots = WorkSlots::new(settings);
        let ids: Vec<_> = (0..4).map(|_| slots.submit(ms(0), ask(10, 0)).unwrap()).collect();
        assert_eq!(ended(&mut slots, 10), ids[..1], "alone when it began");
        // Three are left for two: (3 / 2)² as long.
        assert_eq!(ended(&mut slots, 32), []);
        assert_eq!(ended(&mut slots, 33), ids[1..2]);
        assert_eq!(ended(&mut slots, 43), ids[2..3], "two are not too many");
    }

    #[test]
    fn queued_work_starts_when_a_slot_became_free() {
        let mut slots = slots(1, 0, 2);
        let first = slots.submit(ms(0), ask(10, 0)).unwrap();
        let second = slots.submit(ms(0), ask(10, 0)).unwrap();
        let third = slots.submit(ms(3), ask(10, 0)).unwrap();
        assert_eq!(slots.load(), WorkLoad { running: 1, waiting: 2, blocks: 0 });
        assert_eq!(ended(&mut slots, 9), []);
        // Advanced late: the second started at 10 nevertheless, and ends at 20.
        assert_eq!(ended(&mut slots, 14), [first]);
        assert_eq!(slots.next_event(), Some(ms(20)));
        assert_eq!(ended(&mut slots, 35), [second, third]);
        assert_eq!((slots.load(), slots.next_event()), (WorkLoad::default(), None));
    }

    #[test]
    fn work_beyond_the_queue_is_refused() {
        let mut slots = slots(2, 0, 1);
        slots.submit(ms(0), ask(70, 0)).unwrap();
        slots.submit(ms(0), ask(50, 0)).unwrap();
        let waits = slots.submit(ms(0), ask(50, 0)).unwrap();
        let refused = slots.submit(ms(20), ask(1, 0)).unwrap_err();
        assert_eq!(refused, WorkRefused::Full { retry_after: ms(30) });
        slots.cancel(ms(20), waits);
        assert!(slots.submit(ms(20), ask(1, 0)).is_ok());
    }

    #[test]
    fn work_that_does_not_fit_blocks_the_queue() {
        let mut slots = slots(4, 10, 4);
        let large = slots.submit(ms(0), ask(10, 6)).unwrap();
        let larger = slots.submit(ms(0), ask(10, 5)).unwrap();
        let small = slots.submit(ms(0), ask(10, 1)).unwrap();
        assert_eq!(slots.load(), WorkLoad { running: 1, waiting: 2, blocks: 6 });
        assert_eq!(ended(&mut slots, 10), [large]);
        assert_eq!(slots.load(), WorkLoad { running: 2, waiting: 0, blocks: 6 });
        assert_eq!(ended(&mut slots, 20), [larger, small]);
        let too_large = WorkRefused::TooLarge { blocks: 11, total_blocks: 10 };
        assert_eq!(slots.submit(ms(20), ask(1, 11)), Err(too_large));
    }

    #[test]
    fn cancelled_work_frees_its_slot_and_blocks() {
        let mut slots = slots(1, 4, 4);
        let runs = slots.submit(ms(0), ask(100, 4)).unwrap();
        let gives_up = slots.submit(ms(0), ask(10, 1)).unwrap();
        let next = slots.submit(ms(0), ask(10, 2)).unwrap();
        slots.cancel(ms(3), gives_up);
        assert_eq!(slots.load(), WorkLoad { running: 1, waiting: 1, blocks: 4 });
        slots.cancel(ms(5), runs);
        assert_eq!(slots.load(), WorkLoad { running: 1, waiting: 0, blocks: 2 });
        assert_eq!(ended(&mut slots, 15), [next]);
        // Twice, and after the end: nothing to do.
        slots.cancel(ms(16), runs);
        slots.cancel(ms(16), next);
        assert_eq!(slots.load(), WorkLoad::default());
    }

    #[test]
    fn work_without_duration_takes_a_slot() {
        let mut slots = slots(1, 0, 0);
        let id = slots.submit(ms(5), ask(0, 0)).unwrap();
        assert_eq!(slots.next_event(), Some(ms(5)));
        assert_eq!(ended(&mut slots, 5), [id]);
    }

    #[test]
    fn a_slow_factor_applies_to_work_that_starts_later() {
        let mut slots = slots(1, 0, 4);
        let before = slots.submit(ms(0), ask(10, 0)).unwrap();
        let slow = slots.submit(ms(0), ask(10, 0)).unwrap();
        let fast =
            slots.submit(ms(0), WorkRequest { time: Duration::from_micros(12_345), blocks: 0 });
        slots.set_slow_factor(3.0);
        assert_eq!(ended(&mut slots, 10), [before]);
        assert_eq!(ended(&mut slots, 39), []);
        slots.set_slow_factor(1.0);
        assert_eq!(ended(&mut slots, 40), [slow]);
        assert_eq!(slots.next_event(), Some(Duration::from_micros(52_345)));
        assert_eq!(ended(&mut slots, 53), [fast.unwrap()]);
    }

    #[test]
    fn with_fewer_slots_running_work_finishes() {
        let mut slots = slots(4, 0, 8);
        for _ in 0..8 {
            slots.submit(ms(0), ask(10, 0)).unwrap();
        }
        slots.set_slots_share(ms(1), 0.5);
        assert_eq!(slots.load().running, 4);
        assert_eq!(ended(&mut slots, 10).len(), 4);
        assert_eq!((slots.load().running, slots.load().waiting), (2, 2));
        slots.set_slots_share(ms(12), 0.0);
        assert_eq!(ended(&mut slots, 30).len(), 2);
        assert_eq!((slots.load().running, slots.load().waiting), (0, 2));
        assert_eq!(slots.next_event(), None);
        slots.set_slots_share(ms(40), 1.0);
        assert_eq!(slots.next_event(), Some(ms(50)));
        // At least one slot.
        slots.set_slots_share(ms(40), 0.001);
        assert_eq!(slots.slots(), 1);
    }

    #[test]
    fn frozen_work_neither_starts_nor_ends() {
        let mut slots = slots(2, 0, 1);
        let first = slots.submit(ms(0), ask(10, 0)).unwrap();
        slots.set_frozen(ms(4), true);
        let second = slots.submit(ms(5), ask(10, 0)).unwrap();
        let refused = slots.submit(ms(5), ask(10, 0)).unwrap_err();
        assert_eq!(refused, WorkRefused::Full { retry_after: RETRY_AFTER_UNKNOWN });
        assert_eq!((ended(&mut slots, 50), slots.next_event()), (vec![], None));
        slots.set_frozen(ms(104), false);
        assert_eq!(slots.next_event(), Some(ms(110)));
        assert_eq!(ended(&mut slots, 110), [first]);
        assert_eq!(ended(&mut slots, 114), [second]);
    }
}
