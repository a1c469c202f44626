//! Faults that a drill can't inject, and expectations that can't be judged without them.

use tidegate_sim::scenario::{Expectation, Fault, Mode, Scenario, What};

/// Removes faults that can't be injected and the expectations that depend on them; returns notes about both.
pub fn with_faults(
    scenario: &Scenario,
    is_feasible: impl Fn(&Fault) -> bool,
    why: &str,
) -> (Scenario, Vec<String>) {
    let (faults, infeasible): (Vec<_>, Vec<_>) =
        scenario.faults.iter().cloned().partition(is_feasible);
    let note = |fault: &Fault| format!("The fault \"{fault}\" was not injected: {why}.");
    let mut notes: Vec<String> = infeasible.iter().map(note).collect();
    let is_left = |expected: &Expectation| !depends(scenario, expected, &infeasible);
    let expectations: Vec<_> =
        scenario.expectations.iter().filter(|expected| is_left(expected)).cloned().collect();
    let judged =
        |all: &[Expectation]| all.iter().filter(|expected| expected.is_for(Mode::Drill)).count();
    let (all, left) = (judged(&scenario.expectations), judged(&expectations));
    if left < all {
        notes.push(format!(
            "{} of {all} expectations are not judged: they are about the time of a fault that was not injected.",
            all - left
        ));
    }
    (Scenario { faults, expectations, ..scenario.clone() }, notes)
}

/// True if the expectation is about a time during or after one of these faults.
pub fn depends(scenario: &Scenario, expected: &Expectation, faults: &[Fault]) -> bool {
    let Some(first_s) = faults.iter().map(|fault| fault.from_s).reduce(f64::min) else {
        return false;
    };
    // Losses and duplicates are always judged; the generator's schedule depends on no fault.
    if matches!(expected.what, What::Lost | What::Twice | What::ScheduleErrorP99Ms) {
        return false;
    }
    if expected.of == "healthy" {
        return true;
    }
    let spans = scenario.phase_spans();
    let is_before = |phase: &String| {
        let span = spans.iter().find(|span| span.name == *phase);
        span.is_some_and(|span| span.until_s <= first_s)
    };
    let is_all_before = expected.phase.as_ref().is_some_and(is_before)
        && expected.against.as_ref().is_none_or(is_before);
    !is_all_before
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario() -> Scenario {
        let text = r#"
            about = "Two faults, of which one can be injected."
            duration_s = 30
            upstreams = { count = 2, slots = 1, queue = 1 }
            class = [{ name = "a", share = 1, service = { kind = "fixed", ms = 1 } }]
            phase = [{ name = "calm" }, { name = "first" }, { name = "second" }]
            fault = [
                { kind = "dead", at = [0], from_s = 10, until_s = 20 },
                { kind = "dead", at = [1], from_s = 20, until_s = 25 },
            ]
            expect = [
                { what = "refused_share", phase = "calm", max = 0 },
                { what = "refused_share", phase = "first", max = 0 },
                { what = "refused_share", phase = "second", max = 0 },
                { what = "refused_share", max = 0 },
                { what = "latency_p99_ms", phase = "first", against = "calm", max = 2 },
                { what = "latency_p99_ms", phase = "first", against = "second", max = 2 },
                { what = "latency_p99_ms", of = "healthy", phase = "calm", max = 2 },
                { what = "recovery_s", max = 5 },
                { what = "schedule_error_p99_ms", max = 5 },
                { what = "failed_share", only = "sim", max = 0 },
            ]
        "#;
        Scenario::read("two", text).unwrap()
    }

    fn left(is_feasible: impl Fn(&Fault) -> bool) -> (Vec<usize>, Vec<String>) {
        let scenario = scenario();
        let (left, notes) = with_faults(&scenario, is_feasible, "it is so");
        let all = scenario.expectations.iter().enumerate();
        let is_left = |expected: &Expectation| left.expectations.contains(expected);
        (all.filter(|(_, expected)| is_left(expected)).map(|(at, _)| at).collect(), notes)
    }

    #[test]
    fn expectations_of_a_fault_that_is_not_injected_are_removed() {
        let (expected, notes) = left(|fault| fault.hits(0));
        assert_eq!(expected, [0, 1, 4, 8]);
        assert!(notes[0].contains("\"dead at 1\" was not injected: it is so"), "{notes:?}");
        assert!(notes[1].starts_with("5 of 9 expectations are not judged"), "{notes:?}");
        assert_eq!(left(|_| false).0, [0, 8], "expectations before the first fault stay");
    }

    #[test]
    fn with_all_faults_all_expectations_stay() {
        let (expected, notes) = left(|_| true);
        assert_eq!((expected.len(), notes.len()), (10, 0));
    }
}
