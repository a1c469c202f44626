//! Verdict on expectations after several tries on a shared machine.

use super::machine::Seen;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// Limit of tries.
pub const TRIES: usize = 4;

/// CPU share of other processes below which the machine is quiet.
const OTHERS_QUIET: f64 = 0.02;

/// CPU share of other processes up to which a try without stalls counts.
const OTHERS_SMOOTH: f64 = 0.1;

/// CPU share of other processes above which a try says nothing.
const OTHERS_MAX: f64 = 0.2;

/// Longest stall and send delay of a try without stalls. A scenario tolerates 150 ms in a phase of 3 s, and a
/// stall may repeat.
const STALL_MAX: Duration = Duration::from_millis(50);

/// A phase is at least an eighth of a drill: other processes may have used all their CPU time in one phase.
const PHASES: f64 = 8.0;

/// Tries that must count against an expectation that was missed in all tries.
const WITNESSES: usize = 2;

/// One try: its checks, and the load of the machine.
pub struct Try {
    pub checks: Vec<Value>,
    pub machine: Seen,
    /// Largest send delay.
    pub late: Duration,
    /// The generator reports that it missed its schedule.
    pub is_disowned: bool,
}

/// Verdict after the tries so far.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Each expectation was met in some try.
    Holds,
    /// These were missed, and the machine is not the cause.
    Broken(Vec<String>),
    /// These were missed, and other processes may be the cause: try again.
    Disturbed(Vec<String>),
}

/// State of an expectation.
#[derive(Clone, Copy, Default)]
struct Known {
    holds: bool,
    /// Tries in which it was missed and other processes are not the cause.
    witnesses: usize,
}

/// Combines tries by expectation: other processes disturb a different phase in each try, while a broken
/// expectation is missed in all tries.
#[derive(Default)]
pub struct Judge {
    known: BTreeMap<String, Known>,
    tries: usize,
}

// === impl Try ===

impl Try {
    /// True if other processes used almost no CPU.
    fn is_quiet(&self) -> bool {
        self.machine.others <= OTHERS_QUIET
    }

    /// True without stalls and send delays.
    fn is_smooth(&self) -> bool {
        !self.is_disowned && self.machine.stall.max(self.late) <= STALL_MAX
    }

    /// True if other processes are not the cause of the miss.
    fn speaks_against(&self, check: &Value) -> bool {
        let others = self.machine.others;
        let is_fair = self.is_quiet() || self.is_smooth() && others <= OTHERS_SMOOTH;
        is_fair || others <= OTHERS_MAX && is_beyond(check, others)
    }
}

// === impl Judge ===

impl Judge {
    pub fn add(&mut self, one: &Try) -> Verdict {
        self.tries += 1;
        let mut missed_at_best = Vec::new();
        for check in &one.checks {
            let name = name_of(check);
            let known = self.known.entry(name.clone()).or_default();
            if check["holds"] == true {
                known.holds = true;
                continue;
            }
            known.witnesses += usize::from(one.speaks_against(check));
            if one.is_quiet() && one.is_smooth() {
                missed_at_best.push(name);
            }
        }
        match missed_at_best.is_empty() {
            true => self.sum_up(),
            false => Verdict::Broken(missed_at_best),
        }
    }

    fn sum_up(&self) -> Verdict {
        let open = || self.known.iter().filter(|(_, known)| !known.holds);
        let names = |(name, _): (&String, &Known)| name.clone();
        let is_broken =
            |(_, known): &(&String, &Known)| self.tries >= TRIES && known.witnesses >= WITNESSES;
        let broken: Vec<_> = open().filter(is_broken).map(names).collect();
        match (broken.is_empty(), open().next().is_none()) {
            (false, _) => Verdict::Broken(broken),
            (true, true) => Verdict::Holds,
            (true, false) => Verdict::Disturbed(open().map(names).collect()),
        }
    }
}

/// Name of an expectation, unique in its scenario.
fn name_of(check: &Value) -> String {
    let part = |key: &str| match &check[key] {
        Value::Null => None,
        Value::String(word) => Some(format!(" {key} {word}")),
        other => Some(format!(" {key} {other}")),
    };
    let keys = ["of", "phase", "against", "floor", "min", "max"];
    let parts: String = keys.into_iter().filter_map(part).collect();
    format!("{}{parts}", check["what"].as_str().unwrap_or("something"))
}

/// True if the miss exceeds what other processes can cause: for throughput their share of the phase, at most half;
/// for waits twenty times their share, because queued requests add up; for shares their share.
fn is_beyond(check: &Value, others: f64) -> bool {
    let Some(found) = check["found"].as_f64() else { return true };
    let least = |min: f64| min * (1.0 - PHASES * others).max(0.5);
    let most = |max: f64| max * (1.0 + 20.0 * others) + others;
    let below = check["min"].as_f64().is_some_and(|min| found < least(min));
    let above = check["max"].as_f64().is_some_and(|max| found > most(max));
    below || above
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const GOODPUT: [&str; 2] = ["1x", "2x"];

    /// Try with this CPU share of others and this goodput in two phases, of which at least 0.95 is expected.
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
        phases.iter().map(|phase| format!("goodput phase {phase} min 0.95")).collect()
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

    /// A share of 5 % excuses neither a miss without stalls nor a loss of half.
    #[test]
    fn others_excuse_no_more_than_they_had() {
        let broken = Verdict::Broken(named(&["1x"]));
        assert_eq!(after(&[(0.05, 20, [0.9, 0.97]); TRIES]), broken);
        assert_eq!(after(&[(0.03, 200, [0.6, 0.97]); TRIES]), broken);
        assert_eq!(after(&[(0.15, 200, [0.3, 0.97]); TRIES]), broken);
        // One try of which nothing can be told does not excuse the others.
        let (told, untold) = ((0.15, 200, [0.3, 0.97]), (0.4, 200, [0.3, 0.97]));
        assert_eq!(after(&[told, told, told, untold]), broken);
        let disturbed = Verdict::Disturbed(named(&["1x"]));
        assert_eq!(after(&[(0.05, 200, [0.9, 0.97]); TRIES]), disturbed);
        assert_eq!(after(&[(0.15, 20, [0.9, 0.97]); TRIES]), disturbed);
        assert_eq!(after(&[untold; TRIES]), disturbed);
    }

    #[test]
    fn who_was_late_or_says_so_was_not_in_time() {
        let missed = || tried(0.05, 0, [0.9, 0.97]);
        assert!(missed().is_smooth());
        assert!(!Try { late: 2 * STALL_MAX, ..missed() }.is_smooth());
        assert!(!Try { is_disowned: true, ..missed() }.is_smooth());
    }

    #[test]
    fn how_much_others_explain() {
        let share = |found: f64| is_beyond(&json!({"found": found, "max": 0.0}), 0.05);
        assert_eq!((share(0.04), share(0.06)), (false, true));
        let ratio = |found: f64| is_beyond(&json!({"found": found, "max": 1.5}), 0.05);
        assert_eq!((ratio(3.0), ratio(3.1)), (false, true));
        let goodput = |found: f64| is_beyond(&json!({"found": found, "min": 0.95}), 0.05);
        assert_eq!((goodput(0.6), goodput(0.55)), (false, true));
        assert!(is_beyond(&json!({"found": null, "max": 5.0}), 0.05));
    }

    #[test]
    fn two_ranges_of_one_figure_are_two_expectations() {
        let names = [json!({"what": "used", "min": 0.5}), json!({"what": "used", "max": 0.9})];
        assert_ne!(name_of(&names[0]), name_of(&names[1]));
    }
}
