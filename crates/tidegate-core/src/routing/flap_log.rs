use std::time::Duration;

/// Decides which changes of a state the log tells: each change of one that is mostly stable, and a summary of one
/// that flaps. Each upstream has one for up and down, and the gateway one for each alert and for its load state.
///
/// Pure: times are arguments, since any fixed start.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::routing::FlapLog;
///
/// let mut log = FlapLog::default();
/// let told = (0..50).filter(|step| log.change(Duration::from_millis(step * 100))).count();
/// let summary = log.summary(Duration::from_secs(20)).expect("not all was told");
/// assert_eq!((told, summary.changes), (4, 46));
/// ```
#[derive(Clone, Debug, Default)]
pub struct FlapLog {
    /// The start of the current period, and the changes that were told in it.
    period: Option<(Duration, u32)>,
    held: Option<HeldChanges>,
}

/// Changes that the log has not told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldChanges {
    /// The number of changes.
    pub changes: u64,
    /// The time of the first.
    pub since: Duration,
}

/// Two outages of a moment each are told; a third within the period is flapping.
const TOLD_MAX: u32 = 4;

/// Time between two summaries: six lines a minute show that it goes on.
const PERIOD: Duration = Duration::from_secs(10);

// === impl FlapLog ===

impl FlapLog {
    /// Counts a change. Returns `true` if the log should tell it now; otherwise a summary will.
    pub fn change(&mut self, now: Duration) -> bool {
        if let Some(held) = &mut self.held {
            held.changes += 1;
            return false;
        }
        let (start, told) = match self.period {
            Some((start, told)) if now < start + PERIOD => (start, told),
            _ => (now, 0),
        };
        if told == TOLD_MAX {
            self.held = Some(HeldChanges { changes: 1, since: now });
            return false;
        }
        self.period = Some((start, told + 1));
        true
    }

    /// Returns the changes to sum up, when a period has passed since the first of them.
    pub fn summary(&mut self, now: Duration) -> Option<HeldChanges> {
        let held = self.held.take_if(|held| now >= held.since + PERIOD)?;
        // The summary was the line of the next period: one that flaps on is summed up again.
        self.period = Some((now, TOLD_MAX));
        Some(held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn changes_that_are_rare_are_all_told_at_once() {
        let mut log = FlapLog::default();
        assert!((0..100).all(|number| log.change(ms(number * 3_000))));
        assert_eq!(log.summary(ms(1_000_000)), None);
    }

    #[test]
    fn one_that_flaps_for_a_minute_is_told_four_times_and_summed_up_every_ten_seconds() {
        let mut log = FlapLog::default();
        let (mut told, mut summaries) = (0, Vec::new());
        for step in 0..600 {
            told += u32::from(log.change(ms(step * 100)));
            summaries.extend(log.summary(ms(step * 100)));
        }
        assert_eq!((told, summaries.len()), (TOLD_MAX, 5));
        let summed: u64 = summaries.iter().map(|held| held.changes).sum();
        let rest = log.summary(ms(80_000)).expect("the last changes");
        assert_eq!(summed + rest.changes + u64::from(told), 600, "none is forgotten");
        assert_eq!(log.summary(ms(90_000)), None, "nothing changed");
        assert!(log.change(ms(100_000)), "stable again");
    }
}
