use super::config::QueueConfig;
use super::state::QueueState;

/// Thresholds of the states in messages, so that the queue decides with integers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thresholds {
    /// Length from which a state is entered.
    enter: [usize; 5],
    /// Length below which a state is left.
    leave: [usize; 5],
}

/// State of one queue, and the lengths within which it stays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gauge {
    thresholds: Thresholds,
    state: QueueState,
    stays_from: usize,
    stays_below: usize,
}

// === impl Thresholds ===

impl Thresholds {
    fn new(config: &QueueConfig) -> Self {
        let primary = |fill: f64| messages(fill, config.primary_size);
        let fills = [config.throttle_fill, config.batch_fill, config.overflow_fill];
        let [throttle, batch, overflow] = fills.map(primary);
        let [throttle_off, batch_off, overflow_off] =
            fills.map(|fill| primary(fill - config.hysteresis));
        // Saturation depends on the overflow; a queue without one is saturated when its primary is full.
        let saturated_off = match config.overflow_size {
            0 => primary(1.0 - config.hysteresis),
            size => config.primary_size + messages(1.0 - config.hysteresis, size),
        };
        Self {
            enter: [0, throttle, batch, overflow, config.bound()],
            leave: [0, throttle_off, batch_off, overflow_off, saturated_off],
        }
    }

    /// State that follows `before` at this length: up to the state of the length, down only below the hysteresis.
    fn next(&self, before: QueueState, length: usize) -> QueueState {
        let holds = |state: &QueueState| {
            let index = state.index();
            length >= self.enter[index] || (*state <= before && length >= self.leave[index])
        };
        QueueState::ALL.into_iter().rev().find(holds).unwrap_or_default()
    }

    /// Lengths between which a state stays: from the first, below the second.
    fn stays(&self, state: QueueState) -> (usize, usize) {
        let above = self.enter.get(state.index() + 1).copied().unwrap_or(usize::MAX);
        (self.leave[state.index()], above)
    }
}

/// Smallest number of messages that reaches this fill. Tolerates an error of 1e-9: 0.7 and 0.05 have no exact
/// binary form, and 65 % of 500 must be 325 messages however they were rounded.
fn messages(fill: f64, size: usize) -> usize {
    (fill * size as f64 - 1e-9).ceil().max(0.0) as usize
}

// === impl Gauge ===

impl Gauge {
    pub(crate) fn new(config: &QueueConfig) -> Self {
        let thresholds = Thresholds::new(config);
        let state = QueueState::Healthy;
        let (stays_from, stays_below) = thresholds.stays(state);
        Self { thresholds, state, stays_from, stays_below }
    }

    #[inline]
    pub(crate) fn state(&self) -> QueueState {
        self.state
    }

    /// Updates the state after the queue's length has changed.
    #[inline]
    pub(crate) fn observe(&mut self, length: usize) {
        if length < self.stays_from || length >= self.stays_below {
            self.change(length);
        }
    }

    /// Separate, because nearly every message leaves the state unchanged.
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
