use super::Findings;
use super::never::{NEVER, number_or_never};
use crate::scenario::{Expectation, Mode};
use serde::Serialize;
use std::fmt;

/// The check of one expectation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// The expectation.
    #[serde(flatten)]
    pub expected: Expectation,
    /// The measured value; `None` when nothing was measured, infinite when it never came.
    #[serde(serialize_with = "number_or_never")]
    pub found: Option<f64>,
    /// True if that is within the range. A value that was not measured is not.
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
                Some(against) => {
                    let floor = expected.floor.unwrap_or(0.0);
                    let sides = found.zip(value(Some(against)));
                    let sides = sides.map(|(found, base)| (found.max(floor), base.max(floor)));
                    // Nothing divided by nothing is no ratio.
                    sides.filter(|(_, base)| *base > 0.0).map(|(found, base)| found / base)
                }
            };
            let holds = found.is_some_and(|value| expected.holds(value));
            Check { expected: expected.clone(), found, holds }
        })
        .collect()
}

// === impl Check ===

impl Check {
    /// Formats the measured value. Rounding keeps it on its side of the range: 0.9499 is not shown as 0.950 where
    /// at least 0.95 was expected.
    #[must_use]
    pub fn came(&self) -> String {
        let Some(found) = self.found else { return "nothing was measured".to_owned() };
        if found.is_infinite() {
            return NEVER.to_owned();
        }
        let digits = match found.abs() {
            size if size >= 1000.0 => 0,
            size if size >= 100.0 => 1,
            size if size >= 10.0 => 2,
            _ => 3,
        };
        let stays = |text: &String| {
            text.parse().is_ok_and(|shown| self.expected.holds(shown) == self.expected.holds(found))
        };
        let mut texts = (digits..=9_usize).map(|digits| format!("{found:.digits$}"));
        texts.find(stays).unwrap_or_else(|| found.to_string())
    }
}

impl fmt::Display for Check {
    /// As in `held: goodput_of_capacity of all in 10x ≥ 0.95: 0.983`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.holds { "held" } else { "MISSED" };
        write!(f, "{verdict}: {}: {}", self.expected, self.came())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::What;

    #[test]
    fn a_ratio_of_next_to_nothing_is_judged_from_its_floor_on() {
        let ratio = |floor, calm, flood| {
            let mut findings = Findings::default();
            findings.figure(What::LatencyP99Ms, "all", Some("calm"), calm);
            findings.figure(What::LatencyP99Ms, "all", Some("flood"), flood);
            let expected = Expectation {
                what: What::LatencyP99Ms,
                of: "all".to_owned(),
                phase: Some("flood".to_owned()),
                against: Some("calm".to_owned()),
                floor,
                min: None,
                max: Some(1.5),
                only: None,
                why: None,
            };
            judge(&[expected], &findings, Mode::Drill).remove(0)
        };
        assert_eq!(ratio(None, 2.0, 8.0).found, Some(4.0));
        assert!(ratio(Some(20.0), 2.0, 8.0).holds);
        assert!(!ratio(Some(20.0), 2.0, 31.0).holds);
        assert_eq!(ratio(Some(20.0), 40.0, 80.0).found, Some(2.0));
        assert_eq!(
            ratio(Some(20.0), 2.0, 8.0).to_string(),
            "held: latency_p99_ms of all in flood against calm, each at least 20, ≤ 1.5: 1.000"
        );
    }

    #[test]
    fn what_is_rounded_stays_on_its_side() {
        let expected = Expectation {
            what: What::GoodputOfCapacity,
            of: "all".to_owned(),
            phase: None,
            against: None,
            floor: None,
            min: Some(0.95),
            max: None,
            only: None,
            why: None,
        };
        let came = |found: f64| {
            let holds = expected.holds(found);
            Check { expected: expected.clone(), found: Some(found), holds }.came()
        };
        assert_eq!(came(0.983_4), "0.983");
        assert_eq!(came(0.949_96), "0.94996");
        assert_eq!(came(0.95), "0.950");
        assert_eq!(came(12_345.6), "12346");
        assert_eq!(came(f64::INFINITY), "never");
        let nothing = Check { expected, found: None, holds: false };
        assert_eq!(
            nothing.to_string(),
            "MISSED: goodput_of_capacity of all ≥ 0.95: nothing was measured"
        );
        let never = Check { found: Some(f64::INFINITY), ..nothing.clone() };
        let json = |check| serde_json::to_value(check).unwrap()["found"].clone();
        assert_eq!((json(&nothing), json(&never)), (serde_json::Value::Null, "never".into()));
    }
}
