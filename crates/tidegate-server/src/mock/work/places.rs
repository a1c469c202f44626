use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What is told to come back when nothing runs whose end could be waited for.
const RETRY_AFTER_UNKNOWN: Duration = Duration::from_secs(1);

/// How much can be worked on at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkSettings {
    /// Pieces of work at once.
    pub places: usize,
    /// Blocks of cache, for all of them together.
    pub blocks: u64,
    /// Pieces of work in the queue.
    pub max_waiting: usize,
}

/// What a piece of work takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkAsk {
    /// How long it takes once it has begun.
    pub time: Duration,
    /// Blocks of cache that it holds meanwhile.
    pub blocks: u64,
}

/// The name of a piece of work. Later ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkId(u64);

/// Why a piece of work was not taken. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkRefused {
    /// Every place to work and every place to wait is taken.
    #[error("every place is taken")]
    Full {
        /// When the next piece of work ends.
        retry_after: Duration,
    },
    /// It could not begin if it were alone either.
    #[error("{blocks} blocks are more than the {total_blocks} that there are")]
    TooLarge {
        /// What it asked for.
        blocks: u64,
        /// What there is.
        total_blocks: u64,
    },
}

/// How busy the places are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkLoad {
    /// Pieces of work that are under way.
    pub running: u64,
    /// Pieces of work in the queue.
    pub waiting: u64,
    /// Blocks in use.
    pub blocks: u64,
}

/// Places and blocks for work, strictly first come first served: one that does not fit holds up all behind it.
///
/// What begins after a wait begins when its place became free, not when somebody looked, so coarse timers cost no
/// capacity.
#[derive(Debug)]
pub struct Workplaces {
    settings: WorkSettings,
    places_share: f64,
    slow_factor: f64,
    next_id: u64,
    /// By their names, which is the order in which they came.
    waiting: BTreeMap<WorkId, WorkAsk>,
    running: BTreeMap<WorkId, Running>,
    /// The ends of those that run, in order.
    ends: BTreeSet<(Duration, WorkId)>,
    used_blocks: u64,
    frozen_at: Option<Duration>,
    /// How long time stood still so far. Ends are told without it.
    stood_still: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    ends: Duration,
    blocks: u64,
}

// === impl Workplaces ===

impl Workplaces {
    /// Places that are all free.
    #[must_use]
    pub fn new(settings: WorkSettings) -> Self {
        Self {
            settings,
            places_share: 1.0,
            slow_factor: 1.0,
            next_id: 0,
            waiting: BTreeMap::new(),
            running: BTreeMap::new(),
            ends: BTreeSet::new(),
            used_blocks: 0,
            frozen_at: None,
            stood_still: Duration::ZERO,
        }
    }

    /// Takes a piece of work, to do or to queue. Time has to be [advanced](Self::advance) to `now` before.
    ///
    /// # Errors
    ///
    /// When there is no place for it, or never could be one.
    pub fn submit(&mut self, now: Duration, ask: WorkAsk) -> Result<WorkId, WorkRefused> {
        if ask.blocks > self.settings.blocks {
            let total_blocks = self.settings.blocks;
            return Err(WorkRefused::TooLarge { blocks: ask.blocks, total_blocks });
        }
        let at_once = self.waiting.is_empty() && self.can_begin(ask);
        if !at_once && self.waiting.len() >= self.settings.max_waiting {
            return Err(WorkRefused::Full { retry_after: self.next_place(now) });
        }
        let id = WorkId(self.next_id);
        self.next_id += 1;
        self.waiting.insert(id, ask);
        self.begin_next(self.own_time(now));
        Ok(id)
    }

    /// Ends a piece of work before its time, or takes it out of the queue. One that has ended is left as it is.
    pub fn cancel(&mut self, now: Duration, id: WorkId) {
        if let Some(gone) = self.running.remove(&id) {
            self.ends.remove(&(gone.ends, id));
            self.used_blocks -= gone.blocks;
        } else if self.waiting.remove(&id).is_none() {
            return;
        }
        self.begin_next(self.own_time(now));
    }

    /// Brings the places to `now` and tells what ended on the way, in order.
    pub fn advance(&mut self, now: Duration, mut tell: impl FnMut(WorkId)) {
        let now = self.own_time(now);
        while let Some(&(ends, id)) = self.ends.first().filter(|(ends, _)| *ends <= now) {
            self.ends.pop_first();
            if let Some(done) = self.running.remove(&id) {
                self.used_blocks -= done.blocks;
            }
            tell(id);
            self.begin_next(ends);
        }
    }

    /// When there is something to [advance](Self::advance) to, unless something changes before.
    #[must_use]
    pub fn next_event(&self) -> Option<Duration> {
        let next = self.ends.first().filter(|_| self.frozen_at.is_none())?;
        Some(next.0 + self.stood_still)
    }

    /// Leaves only a part of the places, 0 … 1, rounded, and at least one unless it is 0. Those that work on a
    /// place that is gone finish.
    pub fn set_places_share(&mut self, now: Duration, share: f64) {
        self.places_share = share;
        self.begin_next(self.own_time(now));
    }

    /// Makes work that begins from now on take so many times as long.
    pub fn set_slow_factor(&mut self, factor: f64) {
        self.slow_factor = factor;
    }

    /// Stops time, or lets it go on. What comes while it stands still can only wait.
    pub fn set_frozen(&mut self, now: Duration, frozen: bool) {
        match (self.frozen_at, frozen) {
            (None, true) => self.frozen_at = Some(now),
            (Some(since), false) => {
                self.frozen_at = None;
                self.stood_still += now.saturating_sub(since);
                self.begin_next(self.own_time(now));
            }
            _ => {}
        }
    }

    /// How busy it is.
    #[must_use]
    pub fn load(&self) -> WorkLoad {
        WorkLoad {
            running: self.running.len() as u64,
            waiting: self.waiting.len() as u64,
            blocks: self.used_blocks,
        }
    }

    /// Begins what can begin, strictly in order.
    fn begin_next(&mut self, at: Duration) {
        while let Some((&id, &ask)) = self.waiting.first_key_value() {
            if !self.can_begin(ask) {
                return;
            }
            self.waiting.pop_first();
            let ends = at + ask.time.mul_f64(self.slow_factor);
            self.running.insert(id, Running { ends, blocks: ask.blocks });
            self.ends.insert((ends, id));
            self.used_blocks += ask.blocks;
        }
    }

    fn can_begin(&self, ask: WorkAsk) -> bool {
        self.frozen_at.is_none()
            && self.running.len() < self.places()
            && self.used_blocks + ask.blocks <= self.settings.blocks
    }

    fn places(&self) -> usize {
        let left = (self.settings.places as f64 * self.places_share).round() as usize;
        if self.places_share > 0.0 { left.max(1) } else { 0 }
    }

    fn next_place(&self, now: Duration) -> Duration {
        let left = self.next_event().map(|at| at.saturating_sub(now));
        left.unwrap_or(RETRY_AFTER_UNKNOWN)
    }

    /// `now` on a clock that stands still when work does.
    fn own_time(&self, now: Duration) -> Duration {
        self.frozen_at.unwrap_or(now).saturating_sub(self.stood_still)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn places(places: usize, blocks: u64, max_waiting: usize) -> Workplaces {
        Workplaces::new(WorkSettings { places, blocks, max_waiting })
    }

    fn ask(time_ms: u64, blocks: u64) -> WorkAsk {
        WorkAsk { time: ms(time_ms), blocks }
    }

    fn ended(places: &mut Workplaces, now_ms: u64) -> Vec<WorkId> {
        let mut ended = Vec::new();
        places.advance(ms(now_ms), |id| ended.push(id));
        ended
    }

    #[test]
    fn a_place_is_held_for_the_time_and_the_next_begins_when_it_became_free() {
        let mut places = places(1, 0, 2);
        let first = places.submit(ms(0), ask(10, 0)).unwrap();
        let second = places.submit(ms(0), ask(10, 0)).unwrap();
        let third = places.submit(ms(3), ask(10, 0)).unwrap();
        assert_eq!(places.load(), WorkLoad { running: 1, waiting: 2, blocks: 0 });
        assert_eq!(ended(&mut places, 9), []);
        // Looked at late: the second began at 10 all the same, and ends at 20.
        assert_eq!(ended(&mut places, 14), [first]);
        assert_eq!(places.next_event(), Some(ms(20)));
        assert_eq!(ended(&mut places, 35), [second, third]);
        assert_eq!((places.load(), places.next_event()), (WorkLoad::default(), None));
    }

    #[test]
    fn beyond_the_queue_it_is_refused_until_the_next_end() {
        let mut places = places(2, 0, 1);
        places.submit(ms(0), ask(70, 0)).unwrap();
        places.submit(ms(0), ask(50, 0)).unwrap();
        let waits = places.submit(ms(0), ask(50, 0)).unwrap();
        let refused = places.submit(ms(20), ask(1, 0)).unwrap_err();
        assert_eq!(refused, WorkRefused::Full { retry_after: ms(30) });
        places.cancel(ms(20), waits);
        assert!(places.submit(ms(20), ask(1, 0)).is_ok());
    }

    #[test]
    fn who_does_not_fit_holds_up_those_behind_it() {
        let mut places = places(4, 10, 4);
        let large = places.submit(ms(0), ask(10, 6)).unwrap();
        let larger = places.submit(ms(0), ask(10, 5)).unwrap();
        let small = places.submit(ms(0), ask(10, 1)).unwrap();
        assert_eq!(places.load(), WorkLoad { running: 1, waiting: 2, blocks: 6 });
        assert_eq!(ended(&mut places, 10), [large]);
        assert_eq!(places.load(), WorkLoad { running: 2, waiting: 0, blocks: 6 });
        assert_eq!(ended(&mut places, 20), [larger, small]);
        let too_large = WorkRefused::TooLarge { blocks: 11, total_blocks: 10 };
        assert_eq!(places.submit(ms(20), ask(1, 11)), Err(too_large));
    }

    #[test]
    fn who_leaves_frees_what_it_had_and_the_next_begins_then() {
        let mut places = places(1, 4, 4);
        let runs = places.submit(ms(0), ask(100, 4)).unwrap();
        let gives_up = places.submit(ms(0), ask(10, 1)).unwrap();
        let next = places.submit(ms(0), ask(10, 2)).unwrap();
        places.cancel(ms(3), gives_up);
        assert_eq!(places.load(), WorkLoad { running: 1, waiting: 1, blocks: 4 });
        places.cancel(ms(5), runs);
        assert_eq!(places.load(), WorkLoad { running: 1, waiting: 0, blocks: 2 });
        assert_eq!(ended(&mut places, 15), [next]);
        // Twice, and after the end: nothing to do.
        places.cancel(ms(16), runs);
        places.cancel(ms(16), next);
        assert_eq!(places.load(), WorkLoad::default());
    }

    #[test]
    fn no_time_at_all_still_takes_a_place_for_a_moment() {
        let mut places = places(1, 0, 0);
        let id = places.submit(ms(5), ask(0, 0)).unwrap();
        assert_eq!(places.next_event(), Some(ms(5)));
        assert_eq!(ended(&mut places, 5), [id]);
    }

    #[test]
    fn what_begins_while_it_is_slow_takes_longer_and_what_ran_does_not() {
        let mut places = places(1, 0, 4);
        let before = places.submit(ms(0), ask(10, 0)).unwrap();
        let slow = places.submit(ms(0), ask(10, 0)).unwrap();
        let fast = places.submit(ms(0), WorkAsk { time: Duration::from_micros(12_345), blocks: 0 });
        places.set_slow_factor(3.0);
        assert_eq!(ended(&mut places, 10), [before]);
        assert_eq!(ended(&mut places, 39), []);
        places.set_slow_factor(1.0);
        assert_eq!(ended(&mut places, 40), [slow]);
        assert_eq!(places.next_event(), Some(Duration::from_micros(52_345)));
        assert_eq!(ended(&mut places, 53), [fast.unwrap()]);
    }

    #[test]
    fn with_fewer_places_those_that_run_finish_and_fewer_begin() {
        let mut places = places(4, 0, 8);
        for _ in 0..8 {
            places.submit(ms(0), ask(10, 0)).unwrap();
        }
        places.set_places_share(ms(1), 0.5);
        assert_eq!(places.load().running, 4);
        assert_eq!(ended(&mut places, 10).len(), 4);
        assert_eq!((places.load().running, places.load().waiting), (2, 2));
        places.set_places_share(ms(12), 0.0);
        assert_eq!(ended(&mut places, 30).len(), 2);
        assert_eq!((places.load().running, places.load().waiting), (0, 2));
        assert_eq!(places.next_event(), None);
        places.set_places_share(ms(40), 1.0);
        assert_eq!(places.next_event(), Some(ms(50)));
        // However small the part is, it is one.
        places.set_places_share(ms(40), 0.001);
        assert_eq!(places.places(), 1);
    }

    #[test]
    fn while_time_stands_still_nothing_begins_and_nothing_ends() {
        let mut places = places(2, 0, 1);
        let first = places.submit(ms(0), ask(10, 0)).unwrap();
        places.set_frozen(ms(4), true);
        let second = places.submit(ms(5), ask(10, 0)).unwrap();
        let refused = places.submit(ms(5), ask(10, 0)).unwrap_err();
        assert_eq!(refused, WorkRefused::Full { retry_after: RETRY_AFTER_UNKNOWN });
        assert_eq!((ended(&mut places, 50), places.next_event()), (vec![], None));
        places.set_frozen(ms(104), false);
        assert_eq!(places.next_event(), Some(ms(110)));
        assert_eq!(ended(&mut places, 110), [first]);
        assert_eq!(ended(&mut places, 114), [second]);
    }
}
