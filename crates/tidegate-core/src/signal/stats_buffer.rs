use super::{
    BackpressureLevel, BackpressureSignal, LevelConfig, LevelConfigError, LevelGauge, Update,
};
use crate::admission::MessageClass;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// Updates that wait for their consumer, merged by key.
///
/// The fill is updates waiting / capacity: it rises while the consumer is slower than the senders, and falls as
/// the consumer [takes](Self::take) entries. A merged update counts until its entry is taken, although it takes no
/// memory: the count measures how far the consumer is behind. Memory is bounded by the number of keys.
///
/// The buffer enforces the [signal](Self::signal) that it asks its senders to follow. Final updates are accepted
/// at every level and fill; their number is bounded by the work that exists.
///
/// ```
/// use tidegate_core::admission::MessageClass::Data;
/// use tidegate_core::signal::{BackpressureLevel, LevelConfig, StatsOffer, StatsBuffer, Update};
///
/// let mut buffer = StatsBuffer::new(10, 10, LevelConfig::default())?;
/// let update = StatsOffer { class: Data, update: Update::Progress, batched: false };
/// for count in 0..9 {
///     buffer.record("task", update, count, |old, new| *old = new).ok();
/// }
/// assert_eq!((buffer.waiting(), buffer.level()), (9, BackpressureLevel::Batch));
/// assert!(buffer.record("task", update, 9, |old, new| *old = new).is_err(), "only batches now");
/// assert_eq!(buffer.take(1), [("task", 8)]);
/// assert_eq!(buffer.level(), BackpressureLevel::None);
/// # Ok::<(), tidegate_core::signal::LevelConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct StatsBuffer<K, V> {
    entries: BTreeMap<K, Entry<V>>,
    /// Keys in the order of their first update since they were taken.
    order: VecDeque<K>,
    waiting: u64,
    updates_max: u64,
    keys_max: usize,
    /// Share of the consumer's admission that its messages use.
    admission: f64,
    gauge: LevelGauge,
    totals: StatsBufferTotals,
}

#[derive(Clone, Debug)]
struct Entry<V> {
    value: V,
    updates: u64,
}

/// Kind of an offered update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatsOffer {
    /// Class of the message that carries it.
    pub class: MessageClass,
    /// Intermediate or final.
    pub update: Update,
    /// Its message is a batch, or the sender has merged several updates into it.
    pub batched: bool,
}

/// Totals of a buffer since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StatsBufferTotals {
    /// Updates accepted.
    pub recorded: u64,
    /// Updates among them that were merged into a waiting entry.
    pub merged: u64,
    /// Refused from BATCH on, because they came alone.
    pub unbatched: u64,
    /// Dropped at REJECT, by class: control, dispatch, data, telemetry.
    pub dropped: [u64; 4],
    /// Refused because the buffer was full.
    pub full: u64,
}

/// An update that a [`StatsBuffer`] did not accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatsRefused<V> {
    /// The update.
    pub value: V,
    /// The cause.
    pub reason: StatsRefusedReason,
}

/// Cause of a refusal by a [`StatsBuffer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatsRefusedReason {
    /// The level is BATCH or higher, and the update came alone.
    Unbatched,
    /// The level is REJECT, and the update is not critical.
    Dropped,
    /// No update, or no key, fits into the buffer.
    Full,
}

// === impl StatsBuffer ===

impl<K: Ord + Clone, V> StatsBuffer<K, V> {
    /// Creates a buffer for at most `updates_max` waiting updates of at most `keys_max` keys, each at least 1.
    ///
    /// # Errors
    ///
    /// If the configuration of the levels is not [valid](LevelConfig::validate).
    pub fn new(
        updates_max: u64,
        keys_max: usize,
        levels: LevelConfig,
    ) -> Result<Self, LevelConfigError> {
        Ok(Self {
            entries: BTreeMap::new(),
            order: VecDeque::new(),
            waiting: 0,
            updates_max: updates_max.max(1),
            keys_max: keys_max.max(1),
            admission: 0.0,
            gauge: LevelGauge::new(levels)?,
            totals: StatsBufferTotals::default(),
        })
    }

    /// Accepts an update, merged by `merge` into the entry of its key if one waits.
    ///
    /// # Errors
    ///
    /// Returns the update when the level or the fill does not allow it. A final update is always accepted.
    pub fn record(
        &mut self,
        key: K,
        offer: StatsOffer,
        value: V,
        merge: impl FnOnce(&mut V, V),
    ) -> Result<(), StatsRefused<V>> {
        if offer.update == Update::Progress
            && let Some(reason) = self.refusal(&key, offer)
        {
            self.count(reason, offer.class);
            return Err(StatsRefused { value, reason });
        }
        self.totals.recorded += 1;
        self.waiting += 1;
        match self.entries.get_mut(&key) {
            Some(entry) => {
                self.totals.merged += 1;
                entry.updates += 1;
                merge(&mut entry.value, value);
            }
            None => {
                self.order.push_back(key.clone());
                self.entries.insert(key, Entry { value, updates: 1 });
            }
        }
        self.observe();
        Ok(())
    }

    /// Takes up to `max` entries, the longest waiting first.
    pub fn take(&mut self, max: usize) -> Vec<(K, V)> {
        let mut taken = Vec::with_capacity(max.min(self.order.len()));
        while taken.len() < max
            && let Some(key) = self.order.pop_front()
        {
            if let Some(entry) = self.entries.remove(&key) {
                self.waiting -= entry.updates;
                taken.push((key, entry.value));
            }
        }
        self.observe();
        taken
    }

    /// Signal for an answer sent now.
    #[must_use]
    pub fn signal(&self) -> BackpressureSignal {
        self.gauge.signal()
    }

    /// Level now.
    #[must_use]
    pub fn level(&self) -> BackpressureLevel {
        self.gauge.level()
    }

    /// Updates that wait, with those that were merged.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Keys that wait.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.entries.len()
    }

    /// Sets the share, 0 … 1, that the messages of waiting updates use of what may be in flight. It counts as
    /// fill: senders are slowed before their messages are shed.
    pub fn set_admission(&mut self, share: f64) {
        self.admission = share;
        self.observe();
    }

    /// Fill, 0 … 1; above 1 only with final updates beyond the capacity.
    #[must_use]
    pub fn fill(&self) -> f64 {
        let updates = self.waiting as f64 / self.updates_max as f64;
        let keys = self.entries.len() as f64 / self.keys_max as f64;
        updates.max(keys).max(self.admission)
    }

    /// Most updates that may wait.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.updates_max
    }

    /// Totals since the creation.
    #[must_use]
    pub fn totals(&self) -> StatsBufferTotals {
        self.totals
    }

    fn refusal(&self, key: &K, offer: StatsOffer) -> Option<StatsRefusedReason> {
        let signal = self.gauge.signal();
        // A merged update counts as several: the signal asks for it.
        let updates = if offer.batched { 2 } else { 1 };
        if signal.may_drop(offer.class, offer.update) {
            return Some(StatsRefusedReason::Dropped);
        }
        if !signal.accepts(offer.class, updates) {
            return Some(match signal.drop_non_critical {
                true => StatsRefusedReason::Dropped,
                false => StatsRefusedReason::Unbatched,
            });
        }
        let has_room = self.waiting < self.updates_max
            && (self.entries.len() < self.keys_max || self.entries.contains_key(key));
        (!has_room).then_some(StatsRefusedReason::Full)
    }

    fn count(&mut self, reason: StatsRefusedReason, class: MessageClass) {
        match reason {
            StatsRefusedReason::Unbatched => self.totals.unbatched += 1,
            StatsRefusedReason::Dropped => self.totals.dropped[class.index()] += 1,
            StatsRefusedReason::Full => self.totals.full += 1,
        }
    }

    fn observe(&mut self) {
        let fill = self.fill();
        self.gauge.observe_fill(fill);
    }
}

// === impl StatsRefusedReason ===

impl fmt::Display for StatsRefusedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unbatched => "the buffer accepts merged updates only",
            Self::Dropped => "the buffer accepts critical updates only",
            Self::Full => "the buffer is full",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use BackpressureLevel::{Batch, None, Reject, Throttle};
    use MessageClass::{Data, Telemetry};
    use proptest::prelude::*;

    const ALONE: StatsOffer = StatsOffer { class: Data, update: Update::Progress, batched: false };
    const MERGED: StatsOffer = StatsOffer { batched: true, ..ALONE };
    const FINAL: StatsOffer = StatsOffer { update: Update::Final, ..ALONE };
    const DEBUG: StatsOffer = StatsOffer { class: Telemetry, batched: true, ..ALONE };

    fn buffer(updates_max: u64) -> StatsBuffer<u64, u64> {
        StatsBuffer::new(updates_max, 1_000, LevelConfig::default()).unwrap()
    }

    fn add(
        buffer: &mut StatsBuffer<u64, u64>,
        key: u64,
        offer: StatsOffer,
    ) -> Result<(), StatsRefusedReason> {
        let merge = |old: &mut u64, new| *old = (*old).max(new);
        buffer.record(key, offer, 1, merge).map_err(|refused| refused.reason)
    }

    #[test]
    fn ad37_levels_rise_with_what_waits_and_fall_as_it_is_taken() {
        let mut buffer = buffer(100);
        let mut levels = Vec::new();
        for key in 0..100 {
            let _ = add(&mut buffer, key, MERGED);
            if [68, 69, 83, 84, 93, 94].contains(&key) {
                levels.push(buffer.level());
            }
        }
        assert_eq!(levels, [None, Throttle, Throttle, Batch, Batch, Reject]);
        let mut falling = Vec::new();
        while buffer.waiting() > 0 {
            buffer.take(1);
            if [90, 89, 80, 79, 65, 64].contains(&buffer.waiting()) {
                falling.push(buffer.level());
            }
        }
        assert_eq!(falling, [Reject, Batch, Batch, Throttle, Throttle, None]);
    }

    #[test]
    fn ad37_each_level_accepts_what_its_row_says() {
        use StatsRefusedReason::{Dropped, Unbatched};
        let at = |waiting: u64| {
            let mut buffer = buffer(100);
            (0..waiting).for_each(|key| add(&mut buffer, key, FINAL).unwrap());
            buffer
        };
        for (waiting, alone, merged, debug) in [
            (0, Ok(()), Ok(()), Ok(())),
            (70, Ok(()), Ok(()), Ok(())),
            (85, Err(Unbatched), Ok(()), Ok(())),
            (95, Err(Dropped), Ok(()), Err(Dropped)),
        ] {
            assert_eq!(add(&mut at(waiting), 500, ALONE), alone, "{waiting}");
            assert_eq!(add(&mut at(waiting), 500, MERGED), merged, "{waiting}");
            assert_eq!(add(&mut at(waiting), 500, DEBUG), debug, "{waiting}");
            assert_eq!(add(&mut at(waiting), 500, FINAL), Ok(()), "{waiting}");
        }
        assert_eq!(add(&mut at(100), 500, MERGED), Err(StatsRefusedReason::Full));
        assert_eq!(add(&mut at(100), 500, FINAL), Ok(()), "a final update is never dropped");
    }

    /// A buffer that refuses everything at REJECT and counts only what it accepts would stay there for ever.
    #[test]
    fn reject_clears_when_the_consumer_takes_what_waits() {
        let mut buffer = buffer(10);
        (0..10).for_each(|key| {
            let _ = add(&mut buffer, key, MERGED);
        });
        assert_eq!(buffer.level(), Reject);
        assert_eq!(buffer.take(usize::MAX).len(), 10);
        assert_eq!((buffer.level(), buffer.waiting(), buffer.signal().delay_ms), (None, 0, 0));
    }

    /// Updates that come alone are shed long before they fill the buffer.
    #[test]
    fn the_share_of_the_admission_counts_as_fill() {
        let mut buffer = buffer(100);
        add(&mut buffer, 1, MERGED).unwrap();
        for (share, level) in [
            (0.5, None),
            (0.7, Throttle),
            (0.85, Batch),
            (0.95, Reject),
            (0.92, Reject),
            (0.0, None),
        ] {
            buffer.set_admission(share);
            assert_eq!(buffer.level(), level, "{share}");
        }
        assert_eq!(buffer.waiting(), 1);
    }

    #[test]
    fn keys_are_bounded_too_and_an_update_of_a_waiting_key_still_fits() {
        let mut buffer = StatsBuffer::new(1_000, 4, LevelConfig::default()).unwrap();
        (0..4).for_each(|key| add(&mut buffer, key, MERGED).unwrap());
        assert_eq!(add(&mut buffer, 4, MERGED), Err(StatsRefusedReason::Full));
        assert_eq!(add(&mut buffer, 3, MERGED), Ok(()));
        assert_eq!((buffer.level(), buffer.totals().merged, buffer.totals().full), (Reject, 1, 1));
    }

    proptest! {
        /// Every history of records and takes: the counts add up and the bounds hold.
        #[test]
        fn every_update_is_taken_once_or_refused(
            steps in prop::collection::vec((0..12_u64, 0..4_usize, 0..3_usize), 1..200),
        ) {
            let mut buffer = StatsBuffer::new(16, 8, LevelConfig::default()).unwrap();
            let (mut accepted, mut taken) = (0, 0);
            for (key, offer, take) in steps {
                let offer = [ALONE, MERGED, DEBUG, FINAL][offer];
                if buffer.record(key, offer, 1, |sum: &mut u64, new| *sum += new).is_ok() {
                    accepted += 1;
                }
                if take == 0 {
                    taken += buffer.take(1).into_iter().map(|(_, sum)| sum).sum::<u64>();
                }
                prop_assert_eq!(buffer.waiting(), accepted - taken);
                prop_assert!(buffer.keys() <= 12);
            }
            taken += buffer.take(usize::MAX).into_iter().map(|(_, sum)| sum).sum::<u64>();
            prop_assert_eq!((taken, buffer.waiting(), buffer.level()), (accepted, 0, None));
        }
    }
}
