use super::Edits;
use crate::scenario::Scenario;
use crate::violation::Violation;

/// The most runs that are tried.
const TRIES_MAX: u32 = 120;
/// Rates are halved no further than to this.
const RATE_LEAST: f64 = 1.0 / 64.0;

/// A smaller scenario that shows the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// The edits that leave parts out.
    pub edits: Edits,
    /// The reduced scenario.
    pub scenario: Scenario,
    /// The violation that it shows.
    pub violation: Violation,
    /// Runs that were tried.
    pub tries: u32,
}

/// Leaves out of a scenario whatever can be left out, one thing after the other, as long as `run` still breaks
/// the same invariant. Bounded in tries, so not always the smallest there is.
///
/// `edits` are what was left out already when the violation was found. What is found counts from the whole
/// scenario too, and has them in it.
#[must_use]
pub fn shrink(
    scenario: &Scenario,
    edits: &Edits,
    violation: &Violation,
    run: impl Fn(&Scenario) -> Option<Violation>,
) -> Replay {
    let mut best = Replay {
        edits: edits.clone(),
        scenario: edits.apply(scenario),
        violation: violation.clone(),
        tries: 0,
    };
    loop {
        let helped = candidates(scenario, &best).into_iter().find_map(|edits| {
            if best.tries >= TRIES_MAX {
                return None;
            }
            let smaller = edits.apply(scenario);
            // What leaves nothing out makes nothing smaller, only the command longer.
            if smaller == best.scenario {
                return None;
            }
            best.tries += 1;
            let found = smaller.errors().is_empty().then(|| run(&smaller)).flatten()?;
            let same = found.invariant == violation.invariant;
            same.then_some((edits, smaller, found))
        });
        match helped {
            Some((edits, scenario, violation)) => {
                best = Replay { edits, scenario, violation, ..best };
            }
            None => return best,
        }
    }
}

/// Returns the next edits to try. Faults and classes come before the duration: a run that ends as soon as a fault
/// shows the violation needs that fault, where a longer run might not.
fn candidates(whole: &Scenario, best: &Replay) -> Vec<Edits> {
    let edits = &best.edits;
    let mut candidates = Vec::new();
    for index in (0..whole.faults.len()).filter(|index| !edits.without_faults.contains(index)) {
        let without_faults = [&edits.without_faults[..], &[index]].concat();
        candidates.push(Edits { without_faults, ..edits.clone() });
    }
    if best.scenario.classes.len() > 1 {
        for class in &best.scenario.classes {
            let without_classes =
                [&edits.without_classes[..], std::slice::from_ref(&class.name)].concat();
            candidates.push(Edits { without_classes, ..edits.clone() });
        }
    }
    let now_s = best.scenario.duration_s;
    // Until just after it was seen; where that is after the end, until half of what there is.
    let seen_s = best.violation.at.as_secs_f64();
    for until_s in [(seen_s * 10.0 + 1e-6).ceil() / 10.0, now_s / 2.0, now_s * 0.9] {
        let until_s = (until_s * 1e3).round() / 1e3;
        if until_s >= 0.1 && until_s < now_s - 0.0005 {
            candidates.push(Edits { until_s: Some(until_s), ..edits.clone() });
        }
    }
    if let Some(upstreams) = best.scenario.upstreams.filter(|upstreams| upstreams.count > 1) {
        for count in [upstreams.count / 2, upstreams.count - 1] {
            candidates.push(Edits { upstreams: Some(count), ..edits.clone() });
        }
    }
    // Rates are those of classes.
    if !best.scenario.classes.is_empty() && edits.rate / 2.0 >= RATE_LEAST {
        candidates.push(Edits { rate: edits.rate / 2.0, ..edits.clone() });
    }
    candidates
}
