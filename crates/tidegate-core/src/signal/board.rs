use super::{BackpressureLevel, BackpressureSignal, DELAY_MS_MAX, TTL_MS_MAX};
use std::collections::BTreeMap;
use std::time::Duration;

/// What the receivers of one sender have asked for last.
///
/// Each receiver's newest word replaces its older one, so delays fall as soon as they rose; level 0 clears it.
/// A word holds for its time to live and then counts no more: a receiver that went silent can't hold a sender
/// back for ever. Whoever sends heeds the [maximum](Self::current) of what is left.
///
/// It remembers a bounded number of receivers. When another is heard, the one that asks for least gives way,
/// which never lowers the maximum.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::signal::{BackpressureLevel, LevelConfig, LevelGauge, SignalBoard};
///
/// let gauge = LevelGauge::new(LevelConfig::default())?;
/// let mut board = SignalBoard::new(16);
/// let at = Duration::from_secs;
/// board.hear("a", gauge.signal_of(BackpressureLevel::Reject), at(0));
/// board.hear("b", gauge.signal_of(BackpressureLevel::Throttle), at(3));
/// assert_eq!(board.current(at(4)).level, BackpressureLevel::Reject);
/// assert_eq!(board.current(at(5)).level, BackpressureLevel::Throttle, "a was silent for 5 s");
/// board.hear("b", gauge.signal_of(BackpressureLevel::None), at(5));
/// assert_eq!(board.current(at(5)).level, BackpressureLevel::None);
/// # Ok::<(), tidegate_core::signal::LevelConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SignalBoard<R> {
    heard: BTreeMap<R, Heard>,
    receivers_max: usize,
}

#[derive(Clone, Copy, Debug)]
struct Heard {
    signal: BackpressureSignal,
    until: Duration,
}

// === impl SignalBoard ===

impl<R: Ord + Clone> SignalBoard<R> {
    /// A board for at most so many receivers, at least one.
    #[must_use]
    pub fn new(receivers_max: usize) -> Self {
        Self { heard: BTreeMap::new(), receivers_max: receivers_max.max(1) }
    }

    /// Takes in what a receiver says, within [`DELAY_MS_MAX`] and [`TTL_MS_MAX`]: one that is mistaken can't
    /// stop a sender for days.
    pub fn hear(&mut self, receiver: R, signal: BackpressureSignal, now: Duration) {
        let signal = BackpressureSignal {
            delay_ms: signal.delay_ms.min(DELAY_MS_MAX),
            ttl_ms: signal.ttl_ms.min(TTL_MS_MAX),
            ..signal
        };
        let until = now.saturating_add(Duration::from_millis(signal.ttl_ms.into()));
        if signal.level == BackpressureLevel::None || until <= now {
            self.heard.remove(&receiver);
            return;
        }
        if self.heard.len() >= self.receivers_max && !self.heard.contains_key(&receiver) {
            self.make_room(signal, now);
        }
        if self.heard.len() < self.receivers_max || self.heard.contains_key(&receiver) {
            self.heard.insert(receiver, Heard { signal, until });
        }
    }

    /// A receiver is gone: what it asked for counts no more.
    pub fn forget(&mut self, receiver: &R) {
        self.heard.remove(receiver);
    }

    /// What heeds every receiver that was heard and whose word still holds.
    #[must_use]
    pub fn current(&self, now: Duration) -> BackpressureSignal {
        let live = self.heard.values().filter(|heard| heard.until > now);
        live.fold(BackpressureSignal::CLEAR, |all, heard| all.join(heard.left(now)))
    }

    /// When [`current`](Self::current) will next change by itself, if nothing is heard until then.
    #[must_use]
    pub fn expires_at(&self, now: Duration) -> Option<Duration> {
        self.heard.values().map(|heard| heard.until).filter(|until| *until > now).min()
    }

    /// How many receivers ask for something.
    #[must_use]
    pub fn receivers(&self, now: Duration) -> usize {
        self.heard.values().filter(|heard| heard.until > now).count()
    }

    fn make_room(&mut self, newer: BackpressureSignal, now: Duration) {
        self.heard.retain(|_, heard| heard.until > now);
        if self.heard.len() < self.receivers_max {
            return;
        }
        let rank = |signal: &BackpressureSignal| (signal.level, signal.delay_ms);
        let least = self.heard.iter().min_by_key(|(_, heard)| rank(&heard.signal));
        let Some((receiver, heard)) = least else { return };
        if rank(&heard.signal) <= rank(&newer) {
            let receiver = receiver.clone();
            self.heard.remove(&receiver);
        }
    }
}

// === impl Heard ===

impl Heard {
    /// The signal, with what is left of its time, rounded up: it holds while any of it is left.
    fn left(&self, now: Duration) -> BackpressureSignal {
        let left = self.until.saturating_sub(now).as_nanos().div_ceil(1_000_000);
        BackpressureSignal { ttl_ms: u32::try_from(left).unwrap_or(u32::MAX), ..self.signal }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use BackpressureLevel::{Batch, None, Reject, Throttle};
    use proptest::prelude::*;

    fn signal(level: BackpressureLevel, delay_ms: u32, ttl_ms: u32) -> BackpressureSignal {
        BackpressureSignal {
            level,
            delay_ms,
            batch_only: level >= Batch,
            drop_non_critical: level >= Reject,
            ttl_ms,
        }
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Others' workers ignored level 0, and their delays only ever rose.
    #[test]
    fn level_0_clears_at_once_and_delays_fall_again() {
        let mut board = SignalBoard::new(4);
        board.hear(1, signal(Reject, 500, 5_000), ms(0));
        board.hear(1, signal(Throttle, 50, 5_000), ms(1));
        assert_eq!((board.current(ms(1)).level, board.current(ms(1)).delay_ms), (Throttle, 50));
        board.hear(1, signal(None, 0, 5_000), ms(2));
        assert_eq!(board.current(ms(2)), BackpressureSignal::CLEAR);
        assert_eq!(board.receivers(ms(2)), 0);
    }

    #[test]
    fn a_silent_receivers_signal_expires() {
        let mut board = SignalBoard::new(4);
        board.hear(1, signal(Reject, 500, 100), ms(10));
        assert_eq!(board.expires_at(ms(10)), Some(ms(110)));
        assert_eq!((board.current(ms(109)).level, board.current(ms(109)).ttl_ms), (Reject, 1));
        assert_eq!(board.current(ms(110)), BackpressureSignal::CLEAR);
        assert_eq!(board.expires_at(ms(110)), Option::None);
    }

    #[test]
    fn a_receiver_that_is_gone_does_not_count() {
        let mut board = SignalBoard::new(4);
        board.hear(1, signal(Reject, 500, 5_000), ms(0));
        board.hear(2, signal(Batch, 200, 5_000), ms(0));
        board.forget(&1);
        assert_eq!(board.current(ms(0)).level, Batch);
    }

    #[test]
    fn a_signal_without_time_holds_for_none() {
        let mut board = SignalBoard::new(4);
        board.hear(1, signal(Reject, 500, 0), ms(7));
        assert_eq!(board.current(ms(7)), BackpressureSignal::CLEAR);
        board.hear(1, signal(Reject, 500, u32::MAX), Duration::MAX);
        assert_eq!(board.current(Duration::MAX), BackpressureSignal::CLEAR, "no overflow");
    }

    #[test]
    fn nobody_can_ask_for_days() {
        let mut board = SignalBoard::new(1);
        board.hear(1, signal(Reject, u32::MAX, u32::MAX), ms(0));
        let asked = board.current(ms(0));
        assert_eq!((asked.delay_ms, asked.ttl_ms), (DELAY_MS_MAX, TTL_MS_MAX));
    }

    #[test]
    fn at_the_bound_the_one_that_asks_for_least_gives_way() {
        let mut board = SignalBoard::new(2);
        board.hear(1, signal(Throttle, 50, 5_000), ms(0));
        board.hear(2, signal(Reject, 500, 5_000), ms(0));
        board.hear(3, signal(Batch, 200, 5_000), ms(0));
        board.hear(4, signal(Throttle, 50, 5_000), ms(0));
        board.forget(&2);
        assert_eq!((board.current(ms(0)).level, board.receivers(ms(0))), (Batch, 1));
        board.hear(1, signal(Throttle, 50, 10), ms(0));
        board.hear(5, signal(Throttle, 40, 5_000), ms(10));
        assert_eq!(board.receivers(ms(10)), 2, "what has expired makes room first");
    }

    fn heard() -> impl Strategy<Value = (u8, usize, u32, u64)> {
        (0..12_u8, 0..4_usize, 0..400_u32, 0..60_u64)
    }

    proptest! {
        /// Against a list of everything that was ever said, while all receivers find room.
        #[test]
        fn it_is_the_maximum_of_each_receivers_newest_word_that_holds(
            said in prop::collection::vec(heard(), 1..80),
        ) {
            let (mut board, mut all, mut now) = (SignalBoard::new(12), Vec::new(), 0);
            for (receiver, level, ttl_ms, pause) in said {
                now += pause;
                let level = BackpressureLevel::ALL[level];
                board.hear(receiver, signal(level, ttl_ms, ttl_ms), ms(now));
                all.push((receiver, level, now + u64::from(ttl_ms)));
                let newest = |receiver| all.iter().rev().find(|said| said.0 == receiver);
                let expected = (0..12)
                    .filter_map(newest)
                    .filter(|said| said.2 > now)
                    .map(|said| said.1)
                    .max();
                prop_assert_eq!(board.current(ms(now)).level, expected.unwrap_or_default());
            }
            prop_assert_eq!(board.current(ms(now + 400)), BackpressureSignal::CLEAR, "nothing latches");
        }

        #[test]
        fn it_is_bounded_and_the_bound_never_lowers_the_maximum(
            said in prop::collection::vec(heard(), 1..80),
        ) {
            let (mut small, mut large) = (SignalBoard::new(3), SignalBoard::new(12));
            // All at one time, and each receiver once: then nothing is ever taken back.
            for (number, (_, level, delay_ms, _)) in said.into_iter().enumerate().take(12) {
                let signal = signal(BackpressureLevel::ALL[level], delay_ms, 1_000);
                small.hear(number, signal, ms(0));
                large.hear(number, signal, ms(0));
                prop_assert!(small.receivers(ms(0)) <= 3);
                prop_assert_eq!(small.current(ms(0)).level, large.current(ms(0)).level);
            }
        }
    }
}
