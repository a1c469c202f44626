use super::Findings;
use crate::scenario::{Expectation, Mode};
use serde::Serialize;
use std::fmt;

/// Whether something that was expected came.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// What was expected.
    #[serde(flatten)]
    pub expected: Expectation,
    /// What came; `None` when nothing did that could be measured.
    pub found: Option<f64>,
    /// Whether that is within the range. What could not be measured is not.
    pub holds: bool,
}

/// Holds what was found to what was expected in this mode.
#[must_use]
pub fn judge(expectations: &[Expectation], findings: &Findings, mode: Mode) -> Vec<Check> {
    let judged = expectations.iter().filter(|expected| expected.is_for(mode));
    judged
        .map(|expected| {
            let value = |phase: Option<&str>| findings.value(expected.what, &expected.of, phase);
            let found = value(expected.phase.as_deref());
            let found = match &expected.against {
                None => found,
                // Nothing divided by nothing is no ratio.
                Some(against) => found
                    .zip(value(Some(against)).filter(|base| *base > 0.0))
                    .map(|(found, base)| found / base),
            };
            let holds = found.is_some_and(|value| expected.holds(value));
            Check { expected: expected.clone(), found, holds }
        })
        .collect()
}

// === impl Check ===

impl fmt::Display for Check {
    /// As in `held: goodput_of_capacity of all in 10x ≥ 0.95: 0.983`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.holds { "held" } else { "MISSED" };
        write!(f, "{verdict}: {}: ", self.expected)?;
        match self.found {
            Some(found) => write!(f, "{found:.3}"),
            None => f.write_str("nothing was measured"),
        }
    }
}
