use super::{BackpressureLevel, BackpressureSignal};
use crate::admission::MessageClass;
use std::time::Duration;

/// Flush policy of a sender: when queued updates are sent, and how many at once.
///
/// | level | queued updates are sent |
/// |---|---|
/// | NONE | at once: as a whole batch if there is one, otherwise when the oldest has lingered |
/// | THROTTLE | the same, with the signal's delay between two batches |
/// | BATCH | whole batches with the delay between them; a partial batch when its oldest has waited as long |
/// | REJECT | one merged probe per delay, so that an answer can lower the level |
///
/// Control is sent at once at every level. Dispatch follows the delay, but does not wait for a batch. An expired
/// signal has no effect, and no wait returned by [`decide`](Self::decide) exceeds the signal's lifetime: a silent
/// receiver can't stop a flush loop.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::admission::MessageClass;
/// use tidegate_core::signal::*;
///
/// let policy = FlushPolicy { batch_updates: 512, batch_bytes: 60_000, linger: Duration::ZERO };
/// let waiting = Waiting { class: MessageClass::Data, updates: 20, bytes: 900, since: Duration::ZERO };
/// let (sent, now) = (Some(Duration::from_millis(980)), Duration::from_secs(1));
///
/// assert_eq!(policy.decide(&BackpressureSignal::CLEAR, &waiting, sent, now), Flush::SendNow);
///
/// let gauge = LevelGauge::new(LevelConfig::default())?;
/// let throttled = gauge.signal_of(BackpressureLevel::Throttle);
/// let later = Flush::WaitUntil(Duration::from_millis(1_030));
/// assert_eq!(policy.decide(&throttled, &waiting, sent, now), later, "50 ms after the last");
/// # Ok::<(), tidegate_core::signal::LevelConfigError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlushPolicy {
    /// Updates of a whole batch.
    pub batch_updates: u64,
    /// Bytes of a whole batch.
    pub batch_bytes: u64,
    /// Time that an update waits for others to share its batch without backpressure.
    pub linger: Duration,
}

/// Updates queued for sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Class of the updates.
    pub class: MessageClass,
    /// Number of updates.
    pub updates: u64,
    /// Total size in bytes.
    pub bytes: u64,
    /// Arrival time of the oldest update.
    pub since: Duration,
}

/// Next action of a flush loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// Nothing is queued.
    Idle,
    /// Send everything queued: less than a whole batch.
    SendNow,
    /// Send one batch of this many updates.
    SendBatchOf(u64),
    /// Send one batch of this many updates to probe if the receiver has recovered.
    Probe(u64),
    /// Decide again at this time, or earlier on a change.
    WaitUntil(Duration),
}

// === impl FlushPolicy ===

impl FlushPolicy {
    /// Decides the next action. `signal` is the result of [`SignalBoard::current`](super::SignalBoard::current),
    /// with its remaining lifetime; `last_sent` is the time of the last batch.
    #[must_use]
    pub fn decide(
        &self,
        signal: &BackpressureSignal,
        waiting: &Waiting,
        last_sent: Option<Duration>,
        now: Duration,
    ) -> Flush {
        if waiting.updates == 0 {
            return Flush::Idle;
        }
        let due = self.due(signal, waiting, last_sent);
        if now < due {
            let expiry = match signal.level {
                BackpressureLevel::None => Duration::MAX,
                _ => now.saturating_add(Duration::from_millis(signal.ttl_ms.into())),
            };
            return Flush::WaitUntil(due.min(expiry));
        }
        let updates = waiting.updates.min(self.batch_updates.max(1));
        match signal.level {
            BackpressureLevel::Reject if waiting.class != MessageClass::Control => {
                Flush::Probe(updates)
            }
            _ if self.is_whole(waiting) => Flush::SendBatchOf(updates),
            _ => Flush::SendNow,
        }
    }

    /// Time from which the queued updates may be sent.
    fn due(
        &self,
        signal: &BackpressureSignal,
        waiting: &Waiting,
        last_sent: Option<Duration>,
    ) -> Duration {
        let delay = Duration::from_millis(signal.delay_ms.into());
        let spaced = last_sent.map_or(Duration::ZERO, |sent| sent.saturating_add(delay));
        let lingered = |wait: Duration| match self.is_whole(waiting) {
            true => Duration::ZERO,
            false => waiting.since.saturating_add(wait),
        };
        match (waiting.class, signal.level) {
            (MessageClass::Control, _) => Duration::ZERO,
            (_, BackpressureLevel::None) => lingered(self.linger),
            (MessageClass::Dispatch, _) => spaced,
            (_, BackpressureLevel::Throttle) => spaced.max(lingered(self.linger)),
            (_, BackpressureLevel::Batch) => spaced.max(lingered(self.linger.max(delay))),
            (_, BackpressureLevel::Reject) => spaced,
        }
    }

    fn is_whole(&self, waiting: &Waiting) -> bool {
        waiting.updates >= self.batch_updates || waiting.bytes >= self.batch_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::{LevelConfig, LevelGauge, SignalBoard};
    use BackpressureLevel::{Batch, None, Reject, Throttle};
    use MessageClass::{Control, Data, Dispatch, Telemetry};
    use proptest::prelude::*;

    const POLICY: FlushPolicy =
        FlushPolicy { batch_updates: 100, batch_bytes: 10_000, linger: Duration::from_millis(5) };

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn signal(level: BackpressureLevel) -> BackpressureSignal {
        LevelGauge::new(LevelConfig::default()).unwrap().signal_of(level)
    }

    fn waiting(class: MessageClass, updates: u64, since_ms: u64) -> Waiting {
        Waiting { class, updates, bytes: updates * 50, since: ms(since_ms) }
    }

    /// Decision for data queued since 1,000 ms, with the last batch sent at 1,000 ms.
    fn decide(level: BackpressureLevel, updates: u64, now_ms: u64) -> Flush {
        POLICY.decide(&signal(level), &waiting(Data, updates, 1_000), Some(ms(1_000)), ms(now_ms))
    }

    #[test]
    fn at_none_a_whole_batch_goes_at_once_and_a_part_when_it_has_lingered() {
        assert_eq!(decide(None, 0, 1_000), Flush::Idle);
        assert_eq!(decide(None, 250, 1_000), Flush::SendBatchOf(100));
        assert_eq!(decide(None, 99, 1_000), Flush::WaitUntil(ms(1_005)));
        assert_eq!(decide(None, 99, 1_005), Flush::SendNow);
        let large = Waiting { bytes: 10_000, ..waiting(Data, 3, 1_000) };
        assert_eq!(
            POLICY.decide(&signal(None), &large, Option::None, ms(1_000)),
            Flush::SendBatchOf(3)
        );
    }

    #[test]
    fn at_throttle_there_is_a_delay_between_two_batches() {
        assert_eq!(decide(Throttle, 250, 1_001), Flush::WaitUntil(ms(1_050)));
        assert_eq!(decide(Throttle, 250, 1_050), Flush::SendBatchOf(100));
        assert_eq!(decide(Throttle, 9, 1_050), Flush::SendNow);
    }

    #[test]
    fn at_batch_a_part_waits_to_become_whole_but_not_for_ever() {
        let since = |since_ms| waiting(Data, 9, since_ms);
        let part = |since_ms, now_ms| {
            POLICY.decide(&signal(Batch), &since(since_ms), Some(ms(1_000)), ms(now_ms))
        };
        assert_eq!(decide(Batch, 100, 1_200), Flush::SendBatchOf(100));
        assert_eq!(part(1_150, 1_200), Flush::WaitUntil(ms(1_350)));
        assert_eq!(part(1_150, 1_350), Flush::SendNow);
    }

    /// Others' workers sent nothing at REJECT, so no answer could bring the level down.
    #[test]
    fn at_reject_one_merged_probe_goes_out_each_delay() {
        assert_eq!(decide(Reject, 250, 1_001), Flush::WaitUntil(ms(1_500)));
        assert_eq!(decide(Reject, 250, 1_500), Flush::Probe(100));
        assert_eq!(decide(Reject, 1, 1_500), Flush::Probe(1));
        let telemetry = waiting(Telemetry, 30, 0);
        let probe = POLICY.decide(&signal(Reject), &telemetry, Some(ms(0)), ms(500));
        assert_eq!(probe, Flush::Probe(30));
    }

    #[test]
    fn control_never_waits_and_dispatch_waits_for_nobody() {
        for level in BackpressureLevel::ALL {
            let one = |class| waiting(class, 1, 1_000);
            let decide = |class, now_ms| {
                POLICY.decide(&signal(level), &one(class), Some(ms(1_000)), ms(now_ms))
            };
            assert_eq!(decide(Control, 1_000), Flush::SendNow, "{level}");
            let delay_ms = u64::from(signal(level).delay_ms).max(5);
            assert_eq!(decide(Dispatch, 1_000), Flush::WaitUntil(ms(1_000 + delay_ms)), "{level}");
        }
    }

    #[test]
    fn a_fall_of_the_level_ends_a_wait() {
        assert_eq!(decide(Reject, 250, 1_060), Flush::WaitUntil(ms(1_500)));
        assert_eq!(decide(Throttle, 250, 1_060), Flush::SendBatchOf(100));
    }

    #[test]
    fn no_wait_outlasts_its_signal() {
        let short = BackpressureSignal { delay_ms: 60_000, ttl_ms: 70, ..signal(Reject) };
        let decided = POLICY.decide(&short, &waiting(Data, 9, 0), Some(ms(1_000)), ms(1_000));
        assert_eq!(decided, Flush::WaitUntil(ms(1_070)));
    }

    proptest! {
        /// A receiver says anything once and is never heard again: a loop that asks when it is told to sends
        /// everything, and never later than when the signal has expired and the rest has lingered.
        #[test]
        fn a_silent_receiver_stops_nobody(
            level in 0..4_usize,
            delay_ms in 0..90_000_u32,
            ttl_ms in 0..900_000_u32,
            updates in 1..2_000_u64,
        ) {
            let mut board = SignalBoard::new(1);
            let level = BackpressureLevel::ALL[level];
            let signal = BackpressureSignal { level, delay_ms, ttl_ms, ..signal(level) };
            board.record((), signal, ms(0));
            let (mut now, mut sent, mut left, mut turns) = (ms(0), Option::None, updates, 0);
            while left > 0 {
                turns += 1;
                prop_assert!(turns <= 4_200, "{left} of {updates} left at {now:?}");
                match POLICY.decide(&board.current(now), &waiting(Data, left, 0), sent, now) {
                    Flush::WaitUntil(until) => {
                        prop_assert!(until > now, "a wait that waits for nothing");
                        now = until;
                    }
                    Flush::SendBatchOf(n) | Flush::Probe(n) => { left -= n; sent = Some(now); }
                    Flush::SendNow => { left = 0; sent = Some(now); }
                    Flush::Idle => prop_assert!(false, "{left} wait"),
                }
            }
            prop_assert!(now <= ms(u64::from(ttl_ms)) + POLICY.linger, "{now:?}");
        }

        /// Between two batches there is at least what was asked for, while it is asked for.
        #[test]
        fn delays_are_kept(
            level in 1..4_usize,
            sent_ms in 0..1_000_u64,
            now_ms in 0..2_000_u64,
            updates in 1..300_u64,
        ) {
            let signal = signal(BackpressureLevel::ALL[level]);
            let (waiting, sent) = (waiting(Data, updates, 0), Some(ms(sent_ms)));
            let decided = POLICY.decide(&signal, &waiting, sent, ms(now_ms));
            let early = now_ms < sent_ms + u64::from(signal.delay_ms);
            prop_assert!(!early || matches!(decided, Flush::WaitUntil(_)), "{decided:?}");
        }
    }
}
