use super::change::{FaultChange, Faults};
use std::time::Duration;

/// Limit of timed changes.
const TIMED_MAX: usize = 256;

/// Faults over time: permanent ones, and timed ones that override them, the latest first.
#[derive(Debug, Default)]
pub(in crate::mock) struct FaultPlan {
    permanent: Faults,
    /// In the order in which they were set.
    timed: Vec<Timed>,
}

#[derive(Clone, Copy, Debug)]
struct Timed {
    ends: Duration,
    change: FaultChange,
}

// === impl FaultPlan ===

impl FaultPlan {
    /// Adds a change. A permanent change also removes its fields from timed changes.
    ///
    /// # Errors
    ///
    /// Message if there are too many timed changes; nothing has changed then.
    pub(in crate::mock) fn change(
        &mut self,
        now: Duration,
        change: FaultChange,
    ) -> Result<(), String> {
        self.advance(now);
        let Some(for_ms) = change.for_ms else {
            self.permanent = change.applied_to(self.permanent);
            self.timed.retain_mut(|timed| {
                timed.change = timed.change.without(&change);
                !timed.change.names_nothing()
            });
            return Ok(());
        };
        if self.timed.len() >= TIMED_MAX {
            return Err(format!("for_ms: at most {TIMED_MAX} timed changes"));
        }
        self.timed.push(Timed { ends: now + Duration::from_millis(for_ms), change });
        Ok(())
    }

    /// Removes changes that have ended.
    pub(in crate::mock) fn advance(&mut self, now: Duration) {
        self.timed.retain(|timed| timed.ends > now);
    }

    /// End of the next timed change.
    pub(in crate::mock) fn next_end(&self) -> Option<Duration> {
        self.timed.iter().map(|timed| timed.ends).min()
    }

    /// Faults at present.
    pub(in crate::mock) fn current(&self) -> Faults {
        self.timed.iter().fold(self.permanent, |faults, timed| timed.change.applied_to(faults))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(plan: &mut FaultPlan, now_ms: u64, json: &str) {
        let change = FaultChange::parse(json.as_bytes()).unwrap();
        plan.change(Duration::from_millis(now_ms), change).unwrap();
    }

    fn at(plan: &mut FaultPlan, now_ms: u64) -> Faults {
        plan.advance(Duration::from_millis(now_ms));
        plan.current()
    }

    #[test]
    fn a_timed_change_ends_alone() {
        let mut plan = FaultPlan::default();
        change(&mut plan, 0, r#"{"slow_factor": 2}"#);
        change(&mut plan, 0, r#"{"slow_factor": 8, "frozen": true, "for_ms": 100}"#);
        change(&mut plan, 10, r#"{"slow_factor": 16, "for_ms": 20}"#);
        assert_eq!(plan.next_end(), Some(Duration::from_millis(30)));
        assert_eq!(at(&mut plan, 29).slow_factor, 16.0);
        assert_eq!(at(&mut plan, 30).slow_factor, 8.0);
        assert!(at(&mut plan, 99).frozen);
        assert_eq!(at(&mut plan, 100), Faults { slow_factor: 2.0, ..Faults::default() });
        assert_eq!(plan.next_end(), None);
    }

    #[test]
    fn the_longer_timed_change_stays_when_another_ends() {
        let mut plan = FaultPlan::default();
        change(&mut plan, 0, r#"{"slots_share": 0.5, "for_ms": 10}"#);
        change(&mut plan, 5, r#"{"slots_share": 0.25, "for_ms": 100}"#);
        assert_eq!(at(&mut plan, 10).slots_share, 0.25);
        assert_eq!(at(&mut plan, 105).slots_share, 1.0);
    }

    #[test]
    fn a_permanent_change_overrides_only_its_fields() {
        let mut plan = FaultPlan::default();
        change(&mut plan, 0, r#"{"failure_rate": 1, "cut": true, "for_ms": 100}"#);
        change(&mut plan, 10, r#"{"failure_rate": 0.5}"#);
        assert_eq!((at(&mut plan, 10).failure_rate, plan.current().cut), (0.5, true));
        change(&mut plan, 20, r#"{"cut": false}"#);
        assert_eq!(plan.next_end(), None);
        assert_eq!(at(&mut plan, 200), Faults { failure_rate: 0.5, ..Faults::default() });
    }

    #[test]
    fn timed_changes_are_bounded() {
        let mut plan = FaultPlan::default();
        for _ in 0..TIMED_MAX {
            change(&mut plan, 0, r#"{"frozen": true, "for_ms": 10}"#);
        }
        let more = FaultChange::parse(br#"{"frozen": true, "for_ms": 10}"#).unwrap();
        let error = plan.change(Duration::ZERO, more).unwrap_err();
        assert!(error.contains("256"), "{error}");
        assert_eq!(plan.change(Duration::from_millis(10), more), Ok(()));
    }
}
