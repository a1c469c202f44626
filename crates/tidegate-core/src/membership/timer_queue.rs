use std::collections::BTreeMap;
use std::time::Duration;

/// Times in a row that late timers are armed again. Beyond it they are delivered late: an observer that is always
/// late would else never notice that a member is gone.
pub const REARMS_MAX: u32 = 4;

/// Timers in the order of their due times, which a stall of this process does not make late.
///
/// A process that was stopped finds its timers due and the answers that they wait for unread or not yet sent. If
/// it delivered them, it would suspect healthy members. So when the next timer is later than a bound, all timers
/// are armed again: they move by the stall and once the bound, as if the time of the stall had not passed.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::membership::TimerQueue;
///
/// let at = Duration::from_millis;
/// let mut timers = TimerQueue::new(at(75));
/// timers.push(at(100), "suspect");
/// assert_eq!(timers.pop_due(at(150)), Some("suspect"), "a little late");
/// timers.push(at(200), "suspect");
/// assert_eq!(timers.pop_due(at(3_000)), None, "this process was stopped");
/// assert_eq!(timers.next_due(), Some(at(3_075)));
/// assert_eq!(timers.pop_due(at(3_075)), Some("suspect"));
/// ```
#[derive(Clone, Debug)]
pub struct TimerQueue<T> {
    /// By due time, and then in the order of arming.
    timers: BTreeMap<(Duration, u64), T>,
    armed: u64,
    late_max: Duration,
    rearms_in_a_row: u32,
    stalls: u64,
}

// === impl TimerQueue ===

impl<T> TimerQueue<T> {
    /// A queue without timers. Later than `late_max`, timers are armed again.
    #[must_use]
    pub const fn new(late_max: Duration) -> Self {
        Self { timers: BTreeMap::new(), armed: 0, late_max, rearms_in_a_row: 0, stalls: 0 }
    }

    /// Arms a timer.
    pub fn push(&mut self, due: Duration, timer: T) {
        self.armed += 1;
        self.timers.insert((due, self.armed), timer);
    }

    /// Due time of the next timer.
    #[must_use]
    pub fn next_due(&self) -> Option<Duration> {
        self.timers.first_key_value().map(|((due, _), _)| *due)
    }

    /// The next timer that is due. `None` also when a stall has just moved all of them.
    pub fn pop_due(&mut self, now: Duration) -> Option<T> {
        let late = now.checked_sub(self.next_due()?)?;
        if late > self.late_max && self.rearms_in_a_row < REARMS_MAX {
            self.rearms_in_a_row += 1;
            self.stalls += 1;
            self.shift(late.saturating_add(self.late_max));
            return None;
        }
        if late <= self.late_max {
            self.rearms_in_a_row = 0;
        }
        self.timers.pop_first().map(|(_, timer)| timer)
    }

    /// Stalls of this process that have moved timers.
    #[must_use]
    pub const fn stalls(&self) -> u64 {
        self.stalls
    }

    fn shift(&mut self, by: Duration) {
        let moved = std::mem::take(&mut self.timers).into_iter();
        self.timers = moved.map(|((due, at), t)| ((due.saturating_add(by), at), t)).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_stall_moves_every_timer_and_keeps_their_order() {
        let mut timers = TimerQueue::new(at(75));
        timers.push(at(650), "next probe");
        timers.push(at(300), "indirect probe");
        timers.push(at(300), "armed later");
        timers.push(at(2_000), "down");
        assert_eq!((timers.pop_due(at(3_200)), timers.stalls()), (None, 1));
        assert_eq!(timers.pop_due(at(3_274)), None, "answers get half a round trip");
        assert_eq!(timers.pop_due(at(3_275)), Some("indirect probe"));
        assert_eq!(timers.pop_due(at(3_275)), Some("armed later"));
        assert_eq!(timers.next_due(), Some(at(3_625)));
        assert_eq!(timers.pop_due(at(3_625)), Some("next probe"));
        assert_eq!(timers.next_due(), Some(at(4_975)), "a suspect gets its whole time too");
    }

    #[test]
    fn an_observer_that_is_always_late_still_delivers() {
        let mut timers = TimerQueue::new(at(75));
        timers.push(at(0), 0);
        let (mut now, mut delivered) = (0, 0);
        for _ in 0..100 {
            now += 500;
            if timers.pop_due(at(now)).is_some() {
                delivered += 1;
                timers.push(at(now), 0);
            }
        }
        assert!(delivered >= 90, "{delivered}");
    }
}
