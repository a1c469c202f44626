use super::QueueConfig;
use crate::signal::BackpressureLevel;
use serde::Serialize;
use std::fmt;

/// How full a destination's queue is; a greater state is a fuller queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum QueueState {
    /// There is room.
    #[default]
    Healthy,
    /// The primary is filling: producers should slow down.
    Throttled,
    /// The primary is filling fast: producers should merge what they can.
    Batching,
    /// The primary is nearly full, or the overflow is in use.
    Overflow,
    /// The overflow is full as well: from here on something is dropped or refused for each message.
    Saturated,
}

/// Where each state begins and ends, in messages, so that the queue decides in whole numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thresholds {
    /// A state is entered when the line is at least so long.
    enter: [usize; 5],
    /// And left when the line is shorter than this.
    leave: [usize; 5],
}

/// The state of one queue, and the lengths between which it stays as it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gauge {
    thresholds: Thresholds,
    state: QueueState,
    stays_from: usize,
    stays_below: usize,
}

// === impl QueueState ===

impl QueueState {
    /// Every state, the emptiest first.
    pub const ALL: [Self; 5] =
        [Self::Healthy, Self::Throttled, Self::Batching, Self::Overflow, Self::Saturated];

    /// The name used in snapshots, labels and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Healthy => "HEALTHY",
            Self::Throttled => "THROTTLED",
            Self::Batching => "BATCHING",
            Self::Overflow => "OVERFLOW",
            Self::Saturated => "SATURATED",
        }
    }

    /// What a producer is asked for. An overflowing queue still takes everything, so it asks for no more than a
    /// batching one; only a saturated one asks to send nothing that can be spared.
    #[must_use]
    #[inline]
    pub const fn level(self) -> BackpressureLevel {
        match self {
            Self::Healthy => BackpressureLevel::None,
            Self::Throttled => BackpressureLevel::Throttle,
            Self::Batching | Self::Overflow => BackpressureLevel::Batch,
            Self::Saturated => BackpressureLevel::Reject,
        }
    }

    /// This state's place in an array.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for QueueState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

// === impl Thresholds ===

impl Thresholds {
    fn new(config: &QueueConfig) -> Self {
        let primary = |fill: f64| messages(fill, config.primary_size);
        let fills = [config.throttle_fill, config.batch_fill, config.overflow_fill];
        let [throttle, batch, overflow] = fills.map(primary);
        let [throttle_off, batch_off, overflow_off] =
            fills.map(|fill| primary(fill - config.hysteresis));
        // Saturation is a matter of the overflow; a queue that has none is saturated when its primary is full.
        let saturated_off = match config.overflow_size {
            0 => primary(1.0 - config.hysteresis),
            size => config.primary_size + messages(1.0 - config.hysteresis, size),
        };
        Self {
            enter: [0, throttle, batch, overflow, config.bound()],
            leave: [0, throttle_off, batch_off, overflow_off, saturated_off],
        }
    }

    /// The state after `before` in a line of this length: up as far as its length says, down only where the
    /// hysteresis lets go.
    fn next(&self, before: QueueState, length: usize) -> QueueState {
        let holds = |state: &QueueState| {
            let place = state.index();
            length >= self.enter[place] || (*state <= before && length >= self.leave[place])
        };
        QueueState::ALL.into_iter().rev().find(holds).unwrap_or_default()
    }

    /// From which length on a state goes up, and below which it goes down.
    fn stays(&self, state: QueueState) -> (usize, usize) {
        let above = self.enter.get(state.index() + 1).copied().unwrap_or(usize::MAX);
        (self.leave[state.index()], above)
    }
}

/// The least number of messages that fills this share. A billionth is forgiven: 0.7 and 0.05 have no exact
/// binary form, and 65 % of 500 should be 325 messages whichever way they were rounded.
fn messages(fill: f64, size: usize) -> usize {
    (fill * size as f64 - 1e-9).ceil().max(0.0) as usize
}

// === impl Gauge ===

impl Gauge {
    pub(super) fn new(config: &QueueConfig) -> Self {
        let thresholds = Thresholds::new(config);
        let state = QueueState::Healthy;
        let (stays_from, stays_below) = thresholds.stays(state);
        Self { thresholds, state, stays_from, stays_below }
    }

    #[inline]
    pub(super) fn state(&self) -> QueueState {
        self.state
    }

    /// Looks at the line after it has changed.
    #[inline]
    pub(super) fn observe(&mut self, length: usize) {
        if length < self.stays_from || length >= self.stays_below {
            self.change(length);
        }
    }

    /// Apart, because nearly every message leaves the state as it is.
    #[cold]
    fn change(&mut self, length: usize) {
        self.state = self.thresholds.next(self.state, length);
        (self.stays_from, self.stays_below) = self.thresholds.stays(self.state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use QueueState::{Batching, Healthy, Overflow, Saturated, Throttled};

    /// The states of a default queue as its line takes these lengths in turn.
    fn states(lengths: &[usize]) -> Vec<QueueState> {
        let mut gauge = Gauge::new(&QueueConfig::default());
        let observe = |length: &usize| {
            gauge.observe(*length);
            gauge.state()
        };
        lengths.iter().map(observe).collect()
    }

    #[test]
    fn states_are_entered_at_their_thresholds() {
        assert_eq!(
            states(&[0, 349, 350, 424, 425, 474, 475, 500, 501, 599, 600]),
            [
                Healthy, Healthy, Throttled, Throttled, Batching, Batching, Overflow, Overflow,
                Overflow, Overflow, Saturated
            ]
        );
    }

    #[test]
    fn states_are_left_five_points_below_where_they_were_entered() {
        assert_eq!(
            states(&[600, 595, 594, 475, 450, 449, 425, 400, 399, 350, 325, 324, 0]),
            [
                Saturated, Saturated, Overflow, Overflow, Overflow, Batching, Batching, Batching,
                Throttled, Throttled, Throttled, Healthy, Healthy
            ]
        );
    }

    #[test]
    fn a_line_that_empties_at_once_is_healthy_at_once() {
        assert_eq!(states(&[600, 0]), [Saturated, Healthy]);
        assert_eq!(states(&[600, 410]), [Saturated, Batching]);
    }

    #[test]
    fn a_state_that_was_not_entered_does_not_hold() {
        assert_eq!(states(&[349, 340, 325]), [Healthy; 3]);
        assert_eq!(states(&[360, 424, 405]), [Throttled; 3], "batching begins at 425");
    }

    #[test]
    fn without_an_overflow_a_full_primary_is_saturated() {
        let config = QueueConfig { primary_size: 100, overflow_size: 0, ..QueueConfig::default() };
        let mut gauge = Gauge::new(&config);
        for (length, state) in [(99, Overflow), (100, Saturated), (95, Saturated), (94, Overflow)] {
            gauge.observe(length);
            assert_eq!(gauge.state(), state, "{length}");
        }
    }

    #[test]
    fn the_smallest_queue_has_two_states() {
        let config = QueueConfig { primary_size: 1, overflow_size: 0, ..QueueConfig::default() };
        let mut gauge = Gauge::new(&config);
        for (length, state) in [(1, Saturated), (0, Healthy), (1, Saturated)] {
            gauge.observe(length);
            assert_eq!(gauge.state(), state, "{length}");
        }
    }
}
