use super::{BackpressureLevel, BackpressureSignal, DELAY_MS_MAX, TTL_MS_MAX};
use std::collections::BTreeMap;
use std::time::Duration;

/// Last signals of all receivers of one sender.
///
/// The newest signal of a receiver replaces its older one, so delays fall as fast as they rise; level 0 clears it.
/// A signal expires after its ttl: a silent receiver can't throttle a sender forever. The sender follows the
/// [maximum](Self::current) of the valid signals.
///
/// The number of receivers is bounded. At the bound a new receiver replaces the one with the lowest level, which
/// never lowers the maximum.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::signal::{BackpressureLevel, LevelConfig, LevelGauge, SignalBoard};
///
/// let gauge = LevelGauge::new(LevelConfig::default())?;
/// let mut board = SignalBoard::new(16);
/// let at = Duration::from_secs;
/// board.record("a", gauge.signal_of(BackpressureLevel::Reject), at(0));
/// board.record("b", gauge.signal_of(BackpressureLevel::Throttle), at(3));
/// assert_eq!(board.current(at(4)).level, BackpressureLevel::Reject);
/// assert_eq!(board.current(at(5)).level, BackpressureLevel::Throttle, "a was silent for 5 s");
/// board.record("b", gauge.signal_of(BackpressureLevel::None), at(5));
/// assert_eq!(board.current(at(5)).level, BackpressureLevel::None);
/// # Ok::<(), tidegate_core::signal::LevelConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SignalBoard<R> {
    signals: BTreeMap<R, LastSignal>,
    receivers_max: usize,
}

#[derive(Clone, Copy, Debug)]
struct LastSignal {
    signal: BackpressureSignal,
    expires_at: Duration,
}

// === impl SignalBoard ===

impl<R: Ord + Clone> SignalBoard<R> {
    /// Creates a board for at most `receivers_max` receivers, at least one.
    #[must_use]
    pub fn new(receivers_max: usize) -> Self {
        Self { signals: BTreeMap::new(), receivers_max: receivers_max.max(1) }
    }

    /// Records a receiver's signal, clamped to [`DELAY_MS_MAX`] and [`TTL_MS_MAX`]: a faulty receiver can't stop a
    /// sender for days.
    pub fn record(&mut self, receiver: R, signal: BackpressureSignal, now: Duration) {
        let signal = BackpressureSignal {
            delay_ms: signal.delay_ms.min(DELAY_MS_MAX),
            ttl_ms: signal.ttl_ms.min(TTL_MS_MAX),
            ..signal
        };
        let expires_at = now.saturating_add(Duration::from_millis(signal.ttl_ms.into()));
        if signal.level == BackpressureLevel::None || expires_at <= now {
            self.signals.remove(&receiver);
            return;
        }
        if self.signals.len() >= self.receivers_max && !self.signals.contains_key(&receiver) {
            self.make_room(signal, now);
        }
        if self.signals.len() < self.receivers_max || self.signals.contains_key(&receiver) {
            self.signals.insert(receiver, LastSignal { signal, expires_at });
        }
    }

    /// Removes the signal of a receiver that is gone.
    pub fn forget(&mut self, receiver: &R) {
        self.signals.remove(receiver);
    }

    /// Combination of all valid signals.
    #[must_use]
    pub fn current(&self, now: Duration) -> BackpressureSignal {
        let live = self.signals.values().filter(|last| last.expires_at > now);
        live.fold(BackpressureSignal::CLEAR, |all, last| all.join(last.left(now)))
    }

    /// Time at which [`current`](Self::current) changes next without a new signal.
    #[must_use]
    pub fn expires_at(&self, now: Duration) -> Option<Duration> {
        self.signals
            .values()
            .map(|last| last.expires_at)
            .filter(|expires_at| *expires_at > now)
            .min()
    }

    /// Number of receivers with a valid signal.
    #[must_use]
    pub fn receivers(&self, now: Duration) -> usize {
        self.signals.values().filter(|last| last.expires_at > now).count()
    }

    fn make_room(&mut self, newer: BackpressureSignal, now: Duration) {
        self.signals.retain(|_, last| last.expires_at > now);
        if self.signals.len() < self.receivers_max {
            return;
        }
        let rank = |signal: &BackpressureSignal| (signal.level, signal.delay_ms);
        let least = self.signals.iter().min_by_key(|(_, last)| rank(&last.signal));
        let Some((receiver, last)) = least else { return };
        if rank(&last.signal) <= rank(&newer) {
            let receiver = receiver.clone();
            self.signals.remove(&receiver);
        }
    }
}

// === impl LastSignal ===

impl LastSignal {
    /// Signal with its remaining lifetime, rounded up to whole milliseconds.
    fn left(&self, now: Duration) -> BackpressureSignal {
        let left = self.expires_at.saturating_sub(now).as_nanos().div_ceil(1_000_000);
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
        board.record(1, signal(Reject, 500, 5_000), ms(0));
        board.record(1, signal(Throttle, 50, 5_000), ms(1));
        assert_eq!((board.current(ms(1)).level, board.current(ms(1)).delay_ms), (Throttle, 50));
        board.record(1, signal(None, 0, 5_000), ms(2));
        assert_eq!(board.current(ms(2)), BackpressureSignal::CLEAR);
        assert_eq!(board.receivers(ms(2)), 0);
    }

    #[test]
    fn a_silent_receivers_signal_expires() {
        let mut board = SignalBoard::new(4);
        board.record(1, signal(Reject, 500, 100), ms(10));
        assert_eq!(board.expires_at(ms(10)), Some(ms(110)));
        assert_eq!((board.current(ms(109)).level, board.current(ms(109)).ttl_ms), (Reject, 1));
        assert_eq!(board.current(ms(110)), BackpressureSignal::CLEAR);
        assert_eq!(board.expires_at(ms(110)), Option::None);
    }

    #[test]
    fn a_receiver_that_is_gone_does_not_count() {
        let mut board = SignalBoard::new(4);
        board.record(1, signal(Reject, 500, 5_000), ms(0));
        board.record(2, signal(Batch, 200, 5_000), ms(0));
        board.forget(&1);
        assert_eq!(board.current(ms(0)).level, Batch);
    }

    #[test]
    fn a_signal_without_time_holds_for_none() {
        let mut board = SignalBoard::new(4);
        board.record(1, signal(Reject, 500, 0), ms(7));
        assert_eq!(board.current(ms(7)), BackpressureSignal::CLEAR);
        board.record(1, signal(Reject, 500, u32::MAX), Duration::MAX);
        assert_eq!(board.current(Duration::MAX), BackpressureSignal::CLEAR, "no overflow");
    }

    #[test]
    fn nobody_can_ask_for_days() {
        let mut board = SignalBoard::new(1);
        board.record(1, signal(Reject, u32::MAX, u32::MAX), ms(0));
        let asked = board.current(ms(0));
        assert_eq!((asked.delay_ms, asked.ttl_ms), (DELAY_MS_MAX, TTL_MS_MAX));
    }

    #[test]
    fn at_the_bound_the_one_that_asks_for_least_gives_way() {
        let mut board = SignalBoard::new(2);
        board.record(1, signal(Throttle, 50, 5_000), ms(0));
        board.record(2, signal(Reject, 500, 5_000), ms(0));
        board.record(3, signal(Batch, 200, 5_000), ms(0));
        board.record(4, signal(Throttle, 50, 5_000), ms(0));
        board.forget(&2);
        assert_eq!((board.current(ms(0)).level, board.receivers(ms(0))), (Batch, 1));
        board.record(1, signal(Throttle, 50, 10), ms(0));
        board.record(5, signal(Throttle, 40, 5_000), ms(10));
        assert_eq!(board.receivers(ms(10)), 2, "what has expired makes room first");
    }

    fn last() -> impl Strategy<Value = (u8, usize, u32, u64)> {
        (0..12_u8, 0..4_usize, 0..400_u32, 0..60_u64)
    }

    proptest! {
        /// Against a list of everything that was ever said, while all receivers find room.
        #[test]
        fn it_is_the_maximum_of_each_receivers_newest_word_that_holds(
            signals in prop::collection::vec(last(), 1..80),
        ) {
            let (mut board, mut all, mut now) = (SignalBoard::new(12), Vec::new(), 0);
            for (receiver, level, ttl_ms, pause) in signals {
                now += pause;
                let level = BackpressureLevel::ALL[level];
                board.record(receiver, signal(level, ttl_ms, ttl_ms), ms(now));
                all.push((receiver, level, now + u64::from(ttl_ms)));
                let newest = |receiver| all.iter().rev().find(|signal| signal.0 == receiver);
                let expected = (0..12)
                    .filter_map(newest)
                    .filter(|signal| signal.2 > now)
                    .map(|signal| signal.1)
                    .max();
                prop_assert_eq!(board.current(ms(now)).level, expected.unwrap_or_default());
            }
            prop_assert_eq!(board.current(ms(now + 400)), BackpressureSignal::CLEAR, "nothing latches");
        }

        #[test]
        fn it_is_bounded_and_the_bound_never_lowers_the_maximum(
            signals in prop::collection::vec(last(), 1..80),
        ) {
            let (mut small, mut large) = (SignalBoard::new(3), SignalBoard::new(12));
            // All at one time, and each receiver once: then nothing is ever taken back.
            for (number, (_, level, delay_ms, _)) in signals.into_iter().enumerate().take(12) {
                let signal = signal(BackpressureLevel::ALL[level], delay_ms, 1_000);
                small.record(number, signal, ms(0));
                large.record(number, signal, ms(0));
                prop_assert!(small.receivers(ms(0)) <= 3);
                prop_assert_eq!(small.current(ms(0)).level, large.current(ms(0)).level);
            }
        }
    }
}
