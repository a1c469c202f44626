use super::faults::{FaultChange, Faults};
use std::time::Duration;

/// Changes that end by themselves, at once.
const TIMED_MAX: usize = 256;

/// Which faults stand at a time: those that were set for good, and over them those that end, the latest on top.
#[derive(Debug, Default)]
pub(super) struct FaultPlan {
    lasting: Faults,
    /// In the order in which they were made.
    timed: Vec<Timed>,
}

#[derive(Clone, Copy, Debug)]
struct Timed {
    ends: Duration,
    change: FaultChange,
}

// === impl FaultPlan ===

impl FaultPlan {
    /// Adds a change. One for good has the last word on what it names: nothing that ends later brings back what
    /// was there before it.
    ///
    /// # Errors
    ///
    /// What is wrong, when too many end by themselves. Nothing has changed then.
    pub(super) fn change(&mut self, now: Duration, change: FaultChange) -> Result<(), String> {
        self.advance(now);
        let Some(for_ms) = change.for_ms else {
            self.lasting = change.applied_to(self.lasting);
            self.timed.retain_mut(|timed| {
                timed.change = timed.change.without(&change);
                !timed.change.names_nothing()
            });
            return Ok(());
        };
        if self.timed.len() >= TIMED_MAX {
            return Err(format!("for_ms: at most {TIMED_MAX} changes that end at once"));
        }
        self.timed.push(Timed { ends: now + Duration::from_millis(for_ms), change });
        Ok(())
    }

    /// Takes away what has ended.
    pub(super) fn advance(&mut self, now: Duration) {
        self.timed.retain(|timed| timed.ends > now);
    }

    /// When the next change ends.
    pub(super) fn next_end(&self) -> Option<Duration> {
        self.timed.iter().map(|timed| timed.ends).min()
    }

    /// What goes wrong at present.
    pub(super) fn standing(&self) -> Faults {
        self.timed.iter().fold(self.lasting, |faults, timed| timed.change.applied_to(faults))
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
        plan.standing()
    }

    #[test]
    fn a_timed_change_ends_alone_and_leaves_what_stands_without_it() {
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
    fn the_longer_one_stands_when_the_one_over_it_or_under_it_ends() {
        let mut plan = FaultPlan::default();
        change(&mut plan, 0, r#"{"places_share": 0.5, "for_ms": 10}"#);
        change(&mut plan, 5, r#"{"places_share": 0.25, "for_ms": 100}"#);
        assert_eq!(at(&mut plan, 10).places_share, 0.25);
        assert_eq!(at(&mut plan, 105).places_share, 1.0);
    }

    #[test]
    fn a_lasting_change_has_the_last_word_on_what_it_names_only() {
        let mut plan = FaultPlan::default();
        change(&mut plan, 0, r#"{"failure_rate": 1, "cut": true, "for_ms": 100}"#);
        change(&mut plan, 10, r#"{"failure_rate": 0.5}"#);
        assert_eq!((at(&mut plan, 10).failure_rate, plan.standing().cut), (0.5, true));
        change(&mut plan, 20, r#"{"cut": false}"#);
        assert_eq!(plan.next_end(), None);
        assert_eq!(at(&mut plan, 200), Faults { failure_rate: 0.5, ..Faults::default() });
    }

    #[test]
    fn their_number_is_bounded() {
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
