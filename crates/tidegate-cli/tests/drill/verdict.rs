//! What may be said of a promise after some tries on a machine that others use too.

use super::machine::Seen;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// How often a drill is begun at most.
pub const TRIES: usize = 4;

/// Of all processors, what others and the host may have had of a quiet machine. A scenario leaves 5 % of a phase
/// to chance, and a phase is a tenth of a drill: whoever takes 2 % of the drill may have taken all of that.
const OTHERS_QUIET: f64 = 0.02;

/// With more than this in the hands of others nothing can be told, not even what was missed by far.
const OTHERS_MAX: f64 = 0.2;

/// A thread that waits so long for a processor, or a request that is sent so late, costs a phase of 3 s more than
/// what its scenario leaves to chance.
const STALL_MAX: Duration = Duration::from_millis(50);

/// One try: what was expected, and what the machine did meanwhile.
pub struct Try {
    pub checks: Vec<Value>,
    pub machine: Seen,
    /// The latest that a request was sent.
    pub late: Duration,
    /// Whether the generator says that it did not keep its own schedule.
    pub is_disowned: bool,
}

/// What the tries so far say.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Each expectation was met, on a quiet machine or not.
    Holds,
    /// These were missed, and the machine has no part in it.
    Broken(Vec<String>),
    /// These were missed, and others may have been the reason: try again, or leave it at that.
    Disturbed(Vec<String>),
}

/// What is known of an expectation.
#[derive(Clone, Copy, Default)]
struct Known {
    holds: bool,
    /// Missed while nobody else had the machine.
    is_missed_quietly: bool,
    /// Tries in which it was missed by so much that a busy machine is no reason.
    far: usize,
}

/// Puts the tries together, expectation by expectation: others disturb now this phase and now that one, so the
/// tries of a busy machine miss something each, and a promise that is broken is missed in all of them.
#[derive(Default)]
pub struct Judge {
    known: BTreeMap<String, Known>,
    tries: usize,
}

// === impl Try ===

impl Try {
    /// Whether others had no part in it.
    fn is_quiet(&self) -> bool {
        self.machine.others <= OTHERS_QUIET
    }

    /// Whether everybody ran when it was their turn.
    fn is_smooth(&self) -> bool {
        !self.is_disowned && self.machine.stall.max(self.late) <= STALL_MAX
    }
}

// === impl Judge ===

impl Judge {
    pub fn add(&mut self, one: &Try) -> Verdict {
        self.tries += 1;
        let mut missed_smoothly = Vec::new();
        for check in &one.checks {
            let name = name_of(check);
            let known = self.known.entry(name.clone()).or_default();
            if check["holds"] == true {
                known.holds = true;
                continue;
            }
            known.is_missed_quietly |= one.is_quiet();
            known.far += usize::from(one.machine.others <= OTHERS_MAX && is_far(check));
            if one.is_quiet() && one.is_smooth() {
                missed_smoothly.push(name);
            }
        }
        if !missed_smoothly.is_empty() {
            return Verdict::Broken(missed_smoothly);
        }
        self.sum_up()
    }

    fn sum_up(&self) -> Verdict {
        let open = || self.known.iter().filter(|(_, known)| !known.holds);
        let names = |(name, _): (&String, &Known)| name.clone();
        let broken = |(_, known): &(&String, &Known)| {
            self.tries >= TRIES && (known.is_missed_quietly || known.far == self.tries)
        };
        let found: Vec<_> = open().filter(broken).map(names).collect();
        match (found.is_empty(), open().next().is_none()) {
            (false, _) => Verdict::Broken(found),
            (true, true) => Verdict::Holds,
            (true, false) => Verdict::Disturbed(open().map(names).collect()),
        }
    }
}

/// What tells an expectation from the others of its scenario.
fn name_of(check: &Value) -> String {
    let part = |key: &str| check[key].as_str().map(|word| format!(" {key} {word}"));
    let parts: String = ["of", "phase", "against"].into_iter().filter_map(part).collect();
    format!("{}{parts}", check["what"].as_str().unwrap_or("something"))
}

/// Missed by a factor: half of the least, three times the most. Shares that should be none have a quarter.
fn is_far(check: &Value) -> bool {
    let Some(found) = check["found"].as_f64() else { return true };
    let below = check["min"].as_f64().is_some_and(|min| found < min / 2.0);
    let above = check["max"].as_f64().is_some_and(|max| found > 3.0 * max + 0.25);
    below || above
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const GOODPUT: [&str; 2] = ["1x", "2x"];

    /// A try in which others had so much of the machine and goodput was so in two phases, at least 0.95 each.
    fn tried(others: f64, stall_ms: u64, found: [f64; 2]) -> Try {
        let check = |(phase, found): (&str, f64)| {
            let holds = found >= 0.95;
            json!({"what": "goodput", "phase": phase, "found": found, "min": 0.95, "holds": holds})
        };
        Try {
            checks: GOODPUT.into_iter().zip(found).map(check).collect(),
            machine: Seen { others, stall: Duration::from_millis(stall_ms) },
            late: Duration::ZERO,
            is_disowned: false,
        }
    }

    fn after(tries: &[(f64, u64, [f64; 2])]) -> Verdict {
        let mut judge = Judge::default();
        let mut last = Verdict::Holds;
        for &(others, stall_ms, found) in tries {
            last = judge.add(&tried(others, stall_ms, found));
        }
        last
    }

    fn named(phases: &[&str]) -> Vec<String> {
        phases.iter().map(|phase| format!("goodput phase {phase}")).collect()
    }

    #[test]
    fn what_is_missed_on_a_quiet_machine_is_broken_at_once() {
        assert_eq!(after(&[(0.01, 5, [0.97, 0.94])]), Verdict::Broken(named(&["2x"])));
        assert_eq!(after(&[(0.01, 5, [0.97, 0.96])]), Verdict::Holds);
    }

    #[test]
    fn what_stands_still_by_itself_is_broken_in_the_end() {
        let own = (0.01, 300, [0.9, 0.97]);
        assert_eq!(after(&[own; TRIES - 1]), Verdict::Disturbed(named(&["1x"])));
        assert_eq!(after(&[own; TRIES]), Verdict::Broken(named(&["1x"])));
    }

    #[test]
    fn what_each_try_of_a_busy_machine_misses_elsewhere_holds() {
        let (first, second) = ((0.1, 200, [0.9, 0.97]), (0.1, 200, [0.96, 0.8]));
        assert_eq!(after(&[first]), Verdict::Disturbed(named(&["1x"])));
        assert_eq!(after(&[first, second]), Verdict::Holds);
    }

    #[test]
    fn a_busy_machine_excuses_little_misses_and_no_collapse() {
        let (little, collapse) = ((0.15, 200, [0.9, 0.97]), (0.15, 200, [0.3, 0.97]));
        assert_eq!(after(&[little; TRIES]), Verdict::Disturbed(named(&["1x"])));
        assert_eq!(after(&[collapse; TRIES]), Verdict::Broken(named(&["1x"])));
        assert_eq!(after(&[(0.4, 200, [0.3, 0.97]); TRIES]), Verdict::Disturbed(named(&["1x"])));
    }

    #[test]
    fn how_far_is_far() {
        let share = |found: f64| is_far(&json!({"found": found, "max": 0.0}));
        assert_eq!((share(0.2), share(0.3)), (false, true));
        let ratio = |found: f64| is_far(&json!({"found": found, "max": 1.5}));
        assert_eq!((ratio(4.0), ratio(5.0)), (false, true));
        assert!(is_far(&json!({"found": null, "max": 5.0})));
    }
}
